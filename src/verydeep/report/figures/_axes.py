"""What axes have in common: layers numbered from 1, heat maps, colour bars, names drawn as they are."""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Normalize
from matplotlib.image import AxesImage
from matplotlib.ticker import Formatter, MaxNLocator
from numpy.typing import NDArray

from verydeep.report.figures._theme import Palette

Array = NDArray[np.float64]
Result = TypeVar("Result")
_FINE = 150  # more rows than this are thinner than a dot, and are averaged instead of dropped


def with_names(results: Result | Sequence[tuple[str, Result]]) -> list[tuple[str, Result]]:
    """One result has no name; several come with theirs."""
    return list(results) if isinstance(results, Sequence) else [("", results)]


def layer_grid(values: Sequence[Array]) -> Array:
    """Layers by blocks, NaN where a layer has fewer blocks than the widest; feature maps by their mean."""
    rows = [np.asarray(row, float).reshape(len(row), -1).mean(1) for row in values]
    return np.stack([np.pad(row, (0, max(map(len, rows)) - len(row)), constant_values=np.nan) for row in rows])


def layer_ticks(count: int) -> list[int]:
    """Layers to name on an axis: the first, and then round numbers."""
    steps = [step * power for power in (1, 10, 100, 1000) for step in (1, 2, 5)]
    step = next(step for step in steps if count / step <= 8)
    return sorted({1, *range(step, count + 1, step)})


def draw_heat_map(axes: Axes, values: Array, palette: Palette, norm: Normalize, colours: str) -> AxesImage:
    """Draw layers by blocks, layer 1 on top; what a layer does not have shows the hatched ground."""
    axes.patch.set(facecolor=palette.paper, hatch="////", linewidth=0)
    rows, columns = values.shape
    image = axes.imshow(
        np.ma.masked_invalid(values),
        cmap=colours,
        norm=norm,
        aspect="auto",
        interpolation="nearest" if max(rows, columns) <= _FINE else "auto",
        extent=(0.5, columns + 0.5, rows + 0.5, 0.5),
    )
    axes.set_xticks(layer_ticks(columns))
    axes.set_yticks(layer_ticks(rows))
    axes.tick_params(length=2, labelsize="small")
    return image


def add_colour_bar(
    axes: Axes,
    image: AxesImage,
    label: str,
    ticks: Sequence[float] | None = None,
    style: str | Formatter | None = None,
) -> Colorbar:
    """A thin bar below the axes."""
    assert axes.figure is not None
    place: dict[str, Any] = {"ax": axes, "location": "bottom", "aspect": 30, "pad": 0.02, "fraction": 0.05}
    bar = axes.figure.colorbar(image, label=label, ticks=ticks or MaxNLocator(5), format=style, **place)
    bar.ax.tick_params(labelsize="small")
    return bar


def style_axes(axes: Axes) -> None:
    """A grid, and no box."""
    axes.grid(alpha=0.3)
    axes.grid(which="minor", axis="y", alpha=0.12)  # a logarithmic axis may have no other lines
    axes.spines[["top", "right"]].set_visible(False)


def add_legend(axes: Axes, place: Literal["best", "lower right"] = "best") -> None:
    """A legend; a dollar in a name is a dollar."""
    for text in axes.legend(frameon=False, loc=place).get_texts():
        text.set_parse_math(False)
