"""What closing layers costs: one at a time as the paper's Figure 4, two at a time, and one after the other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from verydeep.analysis import DepthUsage, LesionStudy, PairLesion
from verydeep.report.figures._axes import (
    Array,
    add_colour_bar,
    add_legend,
    draw_heat_map,
    layer_ticks,
    style_axes,
    with_names,
)
from verydeep.report.figures._gates import largest_deviation
from verydeep.report.figures._theme import Palette, Theme, saved_figure

Metric = Literal["error", "loss"]
_LABELS = {"error": "error", "loss": "mean cross-entropy"}
_SPLIT_NAMES = {"train": "training set", "valid": "validation set", "test": "test set"}
_DOTS = 120  # with more layers, dots on the curve would run together


def split_name(split: str) -> str:
    """Name a split of the run's data in full; the name of other data stays as it is."""
    return _SPLIT_NAMES.get(split, split)


def plot_lesions(
    lesions: LesionStudy | Sequence[tuple[str, LesionStudy]],
    path: Path,
    metric: Metric = "error",
    log: bool = False,
    theme: Theme = "light",
) -> Figure:
    """Draw Figure 4: performance against the lesioned layer; dashed, the network with nothing closed.

    Args:
        lesions: Of one network, or of several with their names: each gets a panel.
        path: The picture, by its suffix PNG, SVG or PDF.
        metric: What to draw.
        log: Whether its axis is logarithmic.
        theme: On white or on black.
    """
    networks = with_names(lesions)
    with saved_figure(path, 1.2 + 5.0 * len(networks), 4.0, theme) as (figure, palette):
        panels = figure.subplots(1, len(networks), squeeze=False)[0]
        for axes, (name, study) in zip(panels, networks, strict=True):
            _draw_study(axes, study, metric, palette)
            axes.set_title(name, parse_math=False)
            _scale(axes, metric, log)
    return figure


def _draw_study(axes: Axes, study: LesionStudy, metric: Metric, palette: Palette) -> None:
    count = len(study.layers)
    marker = "o" if count <= _DOTS else ""
    values: Array = getattr(study, metric)
    axes.plot(
        range(1, count + 1), values, color=palette.colours[0], marker=marker, markersize=4, label="one layer closed"
    )
    baseline = getattr(study.baseline, metric)
    axes.axhline(baseline, color=palette.colours[1], linestyle="--", linewidth=1.5, label="nothing closed")
    axes.set(xlabel="lesioned layer", xticks=layer_ticks(count))
    axes.set_ylabel(f"{_LABELS[metric]}, {split_name(study.split)}", parse_math=False)


def _scale(axes: Axes, metric: Metric, log: bool) -> None:
    style_axes(axes)
    add_legend(axes)
    if log:
        axes.set_yscale("log")
    if metric == "error":
        axes.yaxis.set_major_formatter(PercentFormatter(1))


def plot_pair_lesions(pairs: PairLesion, path: Path, metric: Metric = "error", theme: Theme = "light") -> Figure:
    """Draw what closing two layers together costs, and how much more that is than each of the two alone.

    Args:
        pairs: What to draw.
        path: The picture, by its suffix PNG, SVG or PDF.
        metric: What to draw.
        theme: On white or on black.
    """
    values: Array = getattr(pairs, metric)
    more = interaction(values, getattr(pairs.baseline, metric))
    percent = PercentFormatter(1) if metric == "error" else None
    where = split_name(pairs.split)
    with saved_figure(path, 10.5, 6.2, theme) as (figure, palette):
        left, right = figure.subplots(1, 2)
        image = draw_heat_map(left, values, palette, Normalize(), palette.sequential)
        add_colour_bar(left, image, f"{_LABELS[metric]}, {where}", style=percent)
        left.set(title="two layers closed", xlabel="layer", ylabel="layer")
        image = draw_heat_map(right, more, palette, CenteredNorm(0, largest_deviation(more)), palette.diverging)
        add_colour_bar(right, image, "more (or less) than both alone add up to", style=percent)
        right.set(title="what the two have in common", xlabel="layer")
        for axes in (left, right):
            axes.set_box_aspect(1)
    return figure


def interaction(values: Array, baseline: float) -> Array:
    """Rise with two layers closed, minus the rises with each alone; zero on the diagonal."""
    alone = np.diagonal(values)
    more = values - alone[:, None] - alone[None, :] + baseline
    np.fill_diagonal(more, 0)
    return more


def plot_depth_usage(usage: DepthUsage, path: Path, theme: Theme = "light") -> Figure:
    """Draw accuracy against layers kept, the tolerance, the fewest layers within it, and which layers they are.

    Args:
        usage: What to draw.
        path: The picture, by its suffix PNG, SVG or PDF.
        theme: On white or on black.
    """
    accuracy, total = 1 - usage.greedy.error, len(usage.greedy.layers)
    remaining = total - np.arange(len(accuracy))
    with saved_figure(path, 7.5, 5, theme) as (figure, palette):
        axes, strip = figure.subplots(2, 1, height_ratios=(10, 1))
        axes.plot(remaining, accuracy, color=palette.colours[0], marker="o" if total <= _DOTS else "", markersize=4)
        _draw_choice(axes, usage, palette)
        axes.set(xlabel="layers kept", ylabel=f"accuracy, {split_name(usage.greedy.split)}")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        style_axes(axes)
        add_legend(axes, "lower right")
        _draw_strip(strip, usage, palette)
    return figure


def _draw_choice(axes: Axes, usage: DepthUsage, palette: Palette) -> None:
    accuracy, total = 1 - usage.greedy.error, len(usage.greedy.layers)
    lowest = accuracy[0] - usage.tolerance
    axes.axhspan(lowest, accuracy[0], color=palette.colours[2], alpha=0.3, linewidth=0)
    label = f"lowest accuracy allowed: {usage.tolerance:.2%} below all {total} layers"
    axes.axhline(lowest, color=palette.colours[2], linestyle="--", linewidth=1.2, label=label)
    chosen = accuracy[total - len(usage.kept)]
    label = f"{len(usage.kept)} of {total} layers: {chosen:.2%}"
    axes.plot([len(usage.kept)], [chosen], "D", color=palette.colours[1], markersize=9, label=label)


def _draw_strip(axes: Axes, usage: DepthUsage, palette: Palette) -> None:
    total = len(usage.greedy.layers)
    for layers, colour in ((usage.kept, palette.colours[0]), (usage.idle, palette.faint)):
        axes.bar([layer + 1 for layer in layers], 1, width=0.9 if total <= _DOTS else 1.0, color=colour)
    axes.set(xlim=(0.5, total + 0.5), ylim=(0, 1), yticks=[], xticks=layer_ticks(total))
    axes.set_xlabel("layer (coloured: kept, grey: idle)")
    axes.spines[:].set_visible(False)
