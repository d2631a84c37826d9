"""Heat maps for the page: arrays as text that a browser turns back into exactly the same numbers."""

import math
from base64 import b64encode
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from verydeep.report.figures._axes import Array

CELLS = 65_536  # of a map; more would neither be seen nor keep the file small
PAGES = 250_000  # cells of all pages of a map together


@dataclass(frozen=True)
class HeatMap:
    """Layers by blocks, or anything by anything.

    Attributes:
        name: What the values are, in a few words.
        values: (page, row, column); NaN where there is nothing.
        kind: Little to much, or both sides of a middle.
        low: The value of the first colour.
        high: The value of the last colour.
        pages: The name of each page; one of them is shown at a time.
        power: Of the scale; below 1 spreads small values.
        start: A value marked on the colour bar.
        rows: What a row is.
        columns: What a column is.
        names: Of rows and columns, where they are not numbered.
        noise: (page, row, column), where a value may be noise.
        percent: Whether values are shares.
    """

    name: str
    values: Array
    kind: Literal["sequential", "diverging"]
    low: float
    high: float
    pages: tuple[str, ...] = ("",)
    power: float = 1.0
    start: float | None = None
    rows: str = "layer"
    columns: str = "block"
    names: tuple[str, ...] = ()
    noise: NDArray[np.bool_] | None = None
    percent: bool = False

    @property
    def steps(self) -> tuple[int, int]:
        """How many rows and columns each cell stands for: doubled on the longer side until the map is small enough."""
        _, rows, columns = self.values.shape
        row, column = 1, 1
        while math.ceil(rows / row) * math.ceil(columns / column) > CELLS:
            row, column = (row * 2, column) if rows / row >= columns / column else (row, column * 2)
        return row, column

    def to_dict(self) -> dict[str, Any]:
        """For the script of the page."""
        steps = self.steps
        values = block_means(self.values, steps)
        found: dict[str, Any] = {
            "name": self.name, "pages": self.pages, "kind": self.kind, "low": self.low, "high": self.high,
            "power": self.power, "start": self.start, "rows": self.rows, "columns": self.columns,
            "names": self.names, "percent": self.percent, "steps": steps,
            "whole": self.values.shape[1:], "shape": values.shape[1:], "values": encode(values.astype("<f4")),
        }  # fmt: skip
        if self.noise is not None:
            found["noise"] = encode((block_means(self.noise.astype(float), steps) > 0.5).astype("u1"))
        return found


def encode(values: NDArray[Any]) -> str:
    """Bytes as text."""
    return b64encode(values.tobytes()).decode()


def block_means(values: Array, steps: tuple[int, int]) -> Array:
    """Means over so many rows and columns; what is missing does not count."""
    if steps == (1, 1):
        return values
    (row, column), (pages, rows, columns) = steps, values.shape
    padding = ((0, 0), (0, -rows % row), (0, -columns % column))
    padded = np.pad(values, padding, constant_values=np.nan)
    tiles = padded.reshape(pages, padded.shape[1] // row, row, padded.shape[2] // column, column)
    there = np.isfinite(tiles)
    count = there.sum((2, 4))
    total = np.where(there, tiles, 0).sum((2, 4))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def pages_that_fit(cells: int) -> int:
    """How many pages of so many cells a map may have; two can always be compared."""
    return max(2, PAGES // max(1, min(cells, CELLS)))


def colour_maps() -> dict[str, str]:
    """256 colours of each map, red, green and blue."""
    from matplotlib import colormaps

    from verydeep.report.figures._theme import PALETTES

    light, dark = PALETTES["light"], PALETTES["dark"]
    names = {"sequential": light.sequential, "diverging": light.diverging, "diverging-dark": dark.diverging}
    return {kind: encode(colormaps[name](np.arange(256), bytes=True)[:, :3]) for kind, name in names.items()}
