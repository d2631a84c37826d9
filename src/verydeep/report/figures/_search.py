"""Figures of a search: the result against each field, and every trial as a line through all fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from verydeep.report.figures._axes import metric_name, style_axes
from verydeep.report.figures._theme import FigurePath, Palette, Theme, ThemedFigure, themed_figure

if TYPE_CHECKING:  # imported in functions, because optuna is heavy and most figures do not need it
    from verydeep.search import Choices, Range, Space
    from verydeep.studies import TrainingRecord
_MOST_CHARACTERS = 24  # of all choices of a field together; longer labels are rotated


def plot_slices(
    records: Sequence[TrainingRecord], space: Space, metric: str, path: FigurePath = None, *, theme: Theme = "light"
) -> ThemedFigure:
    """Draw the result against each field; diverged trials are crosses at the edge, pruned trials are hollow.

    Args:
        records: The trials; those without settings and unfinished ones are left out.
        space: The fields of the search.
        metric: The metric of the result.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        theme: Colours for a light or a dark background.

    Example:
        >>> from verydeep.report import plot_slices
        >>> from verydeep.search import Choices, Range
        >>> from verydeep.studies import TrainingRecord
        >>> space = {"optim.lr": Range(0.01, 1.0, log=True), "model.depth": Choices((10, 20))}
        >>> settings = [{"optim.lr": 0.1, "model.depth": 10}, {"optim.lr": 0.3, "model.depth": 20}]
        >>> records = [TrainingRecord(n, "finished", 0.9 + n / 100, settings=s) for n, s in enumerate(settings)]
        >>> figure = plot_slices(records, space, "valid_accuracy", "slices.png")
    """
    shown = _shown(records)
    rows = math.ceil(len(space) / 3)
    with themed_figure(path, 3.4 * min(len(space), 3), 3.0 * rows, theme) as (figure, palette):
        for number, (name, domain) in enumerate(space.items(), 1):
            axes = figure.add_subplot(rows, min(len(space), 3), number)
            _draw_slice(axes, shown, name, domain, metric, palette)
    return figure


def plot_parallel(
    records: Sequence[TrainingRecord], space: Space, metric: str, path: FigurePath = None, *, theme: Theme = "light"
) -> ThemedFigure:
    """Draw every trial as a line through its settings, the best on top.

    Args:
        records: The trials; those without settings and unfinished ones are left out.
        space: The fields of the search.
        metric: The metric of the result.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        theme: Colours for a light or a dark background.

    Example:
        >>> from verydeep.report import plot_parallel
        >>> from verydeep.search import Choices, Range
        >>> from verydeep.studies import TrainingRecord
        >>> space = {"optim.lr": Range(0.01, 1.0, log=True), "model.depth": Choices((10, 20))}
        >>> settings = [{"optim.lr": 0.1, "model.depth": 10}, {"optim.lr": 0.3, "model.depth": 20}]
        >>> records = [TrainingRecord(n, "finished", 0.9 + n / 100, settings=s) for n, s in enumerate(settings)]
        >>> figure = plot_parallel(records, space, "valid_accuracy", "parallel.png")
    """
    from verydeep.search import ranked

    ended = ranked(_shown(records), "loss" not in metric)
    shown = [record for record in reversed(ended) if record.value is not None]  # the best is drawn last
    with themed_figure(path, 1.5 * len(space) + 2, 4, theme) as (figure, palette):
        axes = figure.add_subplot()
        colours = _colours(palette, len(shown))
        for record, colour in zip(shown, colours, strict=True):
            heights = [_relative_position(domain, record.settings[name]) for name, domain in space.items()]
            axes.plot(range(len(space)), heights, color=colour, linewidth=1.2, alpha=0.8)
        _parallel_axes(axes, space)
        words = ("lowest", "highest")["loss" not in metric]
        lost = len(ended) - len(shown)
        without = f" ({lost} more diverged)" if lost else ""
        axes.set_title(f"{len(shown)} trials{without}; the brightest have the {words} {metric_name(metric)}")
    return figure


def _shown(records: Sequence[TrainingRecord]) -> list[TrainingRecord]:
    return [r for r in records if r.settings and r.status not in ("training", "waiting", "failed")]


def _draw_slice(
    axes: Axes, shown: list[TrainingRecord], name: str, domain: Range | Choices, metric: str, palette: Palette
) -> None:
    from verydeep.search import Choices, Range

    position = _positions(domain)
    lowest = _draw_results(axes, shown, name, position, palette.colours[0])
    if "loss" in metric and 0 < lowest < math.inf:
        axes.set_yscale("log")
    if lost := [position(record.settings[name]) for record in shown if record.value is None]:
        _draw_diverged(axes, lost, 1.0 if "loss" in metric else 0.0, palette.colours[1])
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize="small")
    if isinstance(domain, Range) and domain.log:
        axes.set_xscale("log")
    elif isinstance(domain, Choices):
        _name_choices(axes, domain)
    axes.set(xlabel=name, ylabel=metric_name(metric))
    style_axes(axes)


def _draw_results(
    axes: Axes, shown: list[TrainingRecord], name: str, position: Callable[[Any], float], colour: str
) -> float:
    """Draw the results, hollow for pruned trials, and return the lowest."""
    lowest = math.inf
    for pruned in (False, True):
        some = [(position(r.settings[name]), r.value) for r in shown if (r.status == "pruned") is pruned]
        points = [(place, value) for place, value in some if value is not None]
        if points:
            places, values = zip(*points, strict=True)
            face, label = ("none", "pruned") if pruned else (colour, None)
            axes.scatter(places, values, 16, facecolors=face, edgecolors=colour, alpha=0.8, label=label)
            lowest = min(lowest, *values)
    return lowest


def _draw_diverged(axes: Axes, places: list[float], edge: float, colour: str) -> None:
    """Draw diverged trials at an edge without changing the range of the axis."""
    heights = axes.get_ylim()
    crosses = axes.plot(places, [edge] * len(places), "x", color=colour, clip_on=False)
    crosses[0].set(transform=axes.get_xaxis_transform(), label="diverged")
    axes.set_ylim(heights)


def _name_choices(axes: Axes, domain: Choices) -> None:
    names = [_format_choice(choice) for choice in domain.choices]
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.5, len(names) - 0.5)
    if sum(map(len, names)) > _MOST_CHARACTERS:
        axes.tick_params(axis="x", labelrotation=30)
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")


def _format_choice(choice: object) -> str:
    """Format a choice much as a configuration file does."""
    if isinstance(choice, bool):
        return str(choice).lower()
    if isinstance(choice, list | tuple):
        return f"[{', '.join(map(_format_choice, choice))}]"
    return f"{choice:g}" if isinstance(choice, float) else str(choice)


def _positions(domain: Range | Choices) -> Callable[[Any], float]:
    """The position of a value on the axis: a number itself, or the index of a choice."""
    from verydeep.search import Range

    if isinstance(domain, Range):
        return float
    choices = [list(c) if isinstance(c, tuple) else c for c in domain.choices]
    return choices.index


def _relative_position(domain: Range | Choices, value: object) -> float:
    """The position of a value between the lowest, 0, and the highest, 1."""
    from verydeep.search import Choices

    if isinstance(domain, Choices):
        return float(_positions(domain)(value)) / max(len(domain.choices) - 1, 1)
    assert isinstance(value, int | float)
    if domain.log:
        return math.log(value / domain.low) / math.log(domain.high / domain.low)
    return (value - domain.low) / (domain.high - domain.low)


def _colours(palette: Palette, count: int) -> list[tuple[float, ...]]:
    from matplotlib import colormaps

    return [tuple(colour) for colour in colormaps[palette.sequential](np.linspace(0, 1, count))]


def _parallel_axes(axes: Axes, space: Space) -> None:
    """Draw a vertical line per field, with its ends and all choices labelled."""
    from verydeep.search import Range

    axes.set_xticks(range(len(space)), list(space))
    axes.set(ylim=(-0.05, 1.05), yticks=[], xlim=(-0.3, len(space) - 0.5))
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.tick_params(axis="x", length=0, labelsize="small", pad=14)
    for number, domain in enumerate(space.values()):
        axes.vlines(number, 0, 1, color="0.5", linewidth=0.8)
        ends = (domain.low, domain.high) if isinstance(domain, Range) else (domain.choices[0], domain.choices[-1])
        for height, end, side in ((-0.02, ends[0], "top"), (1.02, ends[1], "bottom")):
            axes.text(number, height, _format_choice(end), ha="center", va=side, fontsize="small")
        if not isinstance(domain, Range):
            for place, choice in enumerate(domain.choices[1:-1], 1):
                height = place / (len(domain.choices) - 1)
                text = axes.text(
                    number + 0.04, height, _format_choice(choice), ha="left", va="center", fontsize="small"
                )
                text.set_bbox({"facecolor": axes.get_facecolor(), "alpha": 0.8, "pad": 1, "linewidth": 0})
