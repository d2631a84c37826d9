"""Shared parts of plots: heat maps of layers by blocks, colour bars, ticks, legends."""

import math
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
_LEAST_ERROR = 0.001  # an accuracy of 100 % is drawn where an error of this size would be
_TICKS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 1.0)  # of accuracies spaced by their errors
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


def add_legend(axes: Axes, place: Literal["best", "above"] = "best") -> None:
    """Add a legend that shows names literally, without interpreting dollar signs as formulas."""
    outside: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1.01), "borderaxespad": 0}
    for text in axes.legend(frameon=False, **(outside if place == "above" else {"loc": place})).get_texts():
        text.set_parse_math(False)


def widen(low: float, high: float, least: float, *, fraction: bool = False) -> tuple[float, float]:
    """The ends of an axis, moved apart until they are `least` apart; those of a fraction stay about within 0 to 1."""
    missing = least - (high - low)
    if missing <= 0:
        return low, high
    low, high = low - missing / 2, high + missing / 2
    most = 1 + 0.05 * least
    if fraction and high > most:
        low, high = low - (high - most), most
    elif fraction and low < 0:
        low, high = 0.0, high - low
    return low, high


def choose_ticks(ticks: Sequence[tuple[float, str, float]]) -> list[tuple[float, str]]:
    """The labels of an axis that do not overlap: the most important ones first, and others where there is room.

    Args:
        ticks: Positions, labels and the room that each label needs, the most important first.
    """
    chosen: list[tuple[float, str, float]] = []
    for place, text, room in ticks:
        if all(abs(place - other) >= (room + needed) / 2 for other, _, needed in chosen):
            chosen.append((place, text, room))
    return [(place, text) for place, text, _ in sorted(chosen)]


def spread_labels(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move labels apart until neighbours are `gap` apart, as little as possible and between `low` and `high`.

    Args:
        places: Where the labels would best be.
        gap: The distance between the middles of two labels.
        low: The lowest position, which gives way if there are too many labels.
        high: The highest position.
    """
    order = sorted(range(len(places)), key=lambda label: places[label])
    groups: list[
        list[float]
    ] = []  # the sum of the wanted first positions, and the number of labels, of touching labels
    for label in order:
        groups.append([places[label], 1])
        while len(groups) > 1 and _first(groups[-2]) + gap * groups[-2][1] > _first(groups[-1]):
            (wanted, count), (before, earlier) = groups.pop(), groups.pop()
            groups.append([before + wanted - gap * earlier * count, earlier + count])
    found = [_first(group) + gap * place for group in groups for place in range(int(group[1]))]
    for place in range(len(found)):  # from the lower edge up, and then from the upper edge down
        found[place] = max(found[place], low + gap * place)
    for place in range(len(found)):
        found[-1 - place] = min(found[-1 - place], high - gap * place)
    return [found[order.index(label)] for label in range(len(places))]


def _first(group: Sequence[float]) -> float:
    return group[0] / group[1]


def error_position(accuracy: float) -> float:
    """Where an accuracy is on an axis that is spaced by the logarithm of the error."""
    return -math.log10(max(1 + _LEAST_ERROR - accuracy, _LEAST_ERROR / 10))


def accuracy_at(position: float) -> float:
    """The accuracy at a position of such an axis."""
    return float(1 + _LEAST_ERROR - 10**-position)


def error_ticks(limits: tuple[float, float]) -> list[float]:
    """The accuracies to label on such an axis, the most important first."""
    low, high = limits
    chosen = [tick for tick in _TICKS if low <= tick <= high]
    return chosen[::-1]
