"""Shared parts of plots: heat maps of layers by blocks, colour bars, ticks, legends."""

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
from verydeep.words import METRIC_NAMES

Array = NDArray[np.float64]
Result = TypeVar("Result")
LAYER = "layer (from 1)"  # the title of an axis
_MOST_SHARP_ROWS = 150  # more rows than this are thinner than a pixel and are averaged by interpolation


def metric_name(metric: str) -> str:
    """A metric in words: validation accuracy for valid_accuracy."""
    splits = {"valid": "validation", "train": "training", "test": "test"}
    split, _, rest = metric.partition("_")
    if split in splits and rest:
        return f"{splits[split]} {metric_name(rest)}"
    return "learning rate" if metric == "lr" else METRIC_NAMES.get(metric, metric.replace("_", " "))


def with_names(results: Result | Sequence[tuple[str, Result]]) -> list[tuple[str, Result]]:
    """Turn one result into a list with an empty name; several results come with their names."""
    return list(results) if isinstance(results, Sequence) else [("", results)]


def layer_grid(values: Sequence[Array]) -> Array:
    """Stack layers into an array of layers by blocks.

    Feature maps are averaged over positions. Layers with fewer blocks than the widest are padded with NaN.
    """
    rows = [np.asarray(row, float).reshape(len(row), -1).mean(1) for row in values]
    return np.stack([np.pad(row, (0, max(map(len, rows)) - len(row)), constant_values=np.nan) for row in rows])


def layer_ticks(count: int) -> list[int]:
    """Choose the layers to label on an axis: the first, and then round numbers."""
    steps = [step * power for power in (1, 10, 100, 1000) for step in (1, 2, 5)]
    step = next(step for step in steps if count / step <= 8)
    return sorted({1, *range(step, count + 1, step)})


def draw_heat_map(axes: Axes, values: Array, palette: Palette, norm: Normalize, colours: str) -> AxesImage:
    """Draw layers by blocks, layer 1 on top; blocks that a layer does not have are hatched."""
    axes.patch.set(facecolor=palette.paper, hatch="////", linewidth=0)
    rows, columns = values.shape
    image = axes.imshow(
        np.ma.masked_invalid(values),
        cmap=colours,
        norm=norm,
        aspect="auto",
        interpolation="nearest" if max(rows, columns) <= _MOST_SHARP_ROWS else "auto",
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
    """Add a thin colour bar below the axes."""
    assert axes.figure is not None
    place: dict[str, Any] = {"ax": axes, "location": "bottom", "aspect": 30, "pad": 0.02, "fraction": 0.05}
    bar = axes.figure.colorbar(image, label=label, ticks=ticks or MaxNLocator(5), format=style, **place)
    bar.ax.tick_params(labelsize="small")
    return bar


def style_axes(axes: Axes) -> None:
    """Add a grid, and remove the frame at the top and on the right."""
    axes.grid(alpha=0.3)
    axes.grid(which="minor", axis="y", alpha=0.12)  # a short logarithmic axis may have only minor lines
    axes.spines[["top", "right"]].set_visible(False)


def add_legend(axes: Axes, place: Literal["best", "lower right"] = "best") -> None:
    """Add a legend that shows names literally, without interpreting dollar signs as formulas."""
    for text in axes.legend(frameon=False, loc=place).get_texts():
        text.set_parse_math(False)
