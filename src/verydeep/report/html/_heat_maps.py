"""Heat maps of the page: arrays encoded as text that the page's script decodes to the same float32 values."""

import math
from base64 import b64encode
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from verydeep.report.figures._axes import Array

MOST_CELLS = 65_536  # of a map; more would not be visible and make the file large
MOST_CELLS_OF_ALL_PAGES = 250_000


@dataclass(frozen=True)
class HeatMap:
    """One or several arrays of rows by columns, such as layers by blocks; the page shows one at a time.

    Attributes:
        name: A short name of the values.
        values: An array (page, row, column), with NaN where there is no value.
        kind: The colour map: sequential for low to high, diverging for values around a middle.
        low: The value of the first colour.
        high: The value of the last colour.
        pages: The name of each page.
        power: The exponent of the colour scale; below 1, it spreads small values.
        start: A value marked on the colour bar.
        rows: The name of a row.
        columns: The name of a column.
        names: The names of rows and columns if they are not numbered.
        noise: A mask (page, row, column) of values that may be noise.
        percent: Whether values are fractions, shown as percentages.
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
        """How many rows and columns each cell averages: doubled on the longer side until the map is small enough."""
        _, rows, columns = self.values.shape
        row, column = 1, 1
        while math.ceil(rows / row) * math.ceil(columns / column) > MOST_CELLS:
            row, column = (row * 2, column) if rows / row >= columns / column else (row, column * 2)
        return row, column

    def to_dict(self) -> dict[str, Any]:
        """The values for the page's script."""
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
    """Encode an array as base64 text."""
    return b64encode(values.tobytes()).decode()


def block_means(values: Array, steps: tuple[int, int]) -> Array:
    """Average blocks of rows and columns, ignoring missing values."""
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
    """How many pages of this many cells a map may have; always at least two, for comparison."""
    return max(2, MOST_CELLS_OF_ALL_PAGES // max(1, min(cells, MOST_CELLS)))


def colour_maps() -> dict[str, str]:
    """Encode 256 colours, as red, green and blue, of each colour map."""
    from matplotlib import colormaps

    from verydeep.report.figures._theme import PALETTES

    light, dark = PALETTES["light"], PALETTES["dark"]
    names = {"sequential": light.sequential, "diverging": light.diverging, "diverging-dark": dark.diverging}
    return {kind: encode(colormaps[name](np.arange(256), bytes=True)[:, :3]) for kind, name in names.items()}
