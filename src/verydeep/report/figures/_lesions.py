"""The cost of closing layers: one at a time, as in the paper's Figure 4, in pairs, and one after another."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm, Normalize
from matplotlib.ticker import MaxNLocator, PercentFormatter

from verydeep.analysis import DepthUsage, GreedyLesion, LesionStudy, PairLesion, split_name
from verydeep.report.figures._axes import (
    LAYER,
    Array,
    add_colour_bar,
    add_legend,
    draw_heat_map,
    layer_ticks,
    style_axes,
    widen,
    with_names,
)
from verydeep.report.figures._gates import largest_deviation
from verydeep.report.figures._theme import FigurePath, Palette, Theme, ThemedFigure, themed_figure
from verydeep.words import MEASURES, error_name, loss_name, score

Metric = Literal["error", "loss"]
INTERVAL = 1.96  # standard errors to either side are a 95 % interval
_MOST_MARKERS = 120  # layers; with more, markers on the curve would overlap
LOWEST_R2 = -1.0  # a curve is cut off below, because a network without most of its layers can be arbitrarily bad


def measured_on(metric: str, split: str) -> str:
    """The title of an axis: a metric and the data it was measured on, if it has a name."""
    return f"{metric}, {split_name(split)}" if split else metric


def least_extent(metric: Metric, level: float, noise: Array | None) -> float:
    """How far an axis of errors, scores or losses must at least reach, so that noise is not drawn as mountains.

    Args:
        metric: What is drawn.
        level: Its value for the full network.
        noise: Standard errors of differences to it, if they are known.
    """
    known = np.zeros(1) if noise is None else noise[np.isfinite(noise)]
    typical = float(np.sqrt(np.mean(known**2))) if known.size else 0.0
    return max(0.01 if metric == "error" else 0.05 * abs(level), 20 * typical)


def lesion_noise(study: LesionStudy, metric: Metric) -> Array | None:
    """The standard errors of the rise of a metric; None if they are not known."""
    return study.standard_error if metric == "error" else study.loss_standard_error


def _label(metric: Metric, measure: str) -> str:
    return error_name(measure) if metric == "error" else loss_name(measure)


def plot_lesions(
    lesions: LesionStudy | Sequence[tuple[str, LesionStudy]],
    path: FigurePath = None,
    *,
    metric: Metric = "error",
    log: bool = False,
    theme: Theme = "light",
) -> ThemedFigure:
    """Draw Figure 4: the error (or loss) with each layer closed, and, dashed, that of the full network.

    Args:
        lesions: The study of one network, or of several with their names; each gets a panel.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        metric: The metric to draw.
        log: Whether its axis is logarithmic.
        theme: Colours for a light or a dark background.

    Example:
        >>> from verydeep.analysis import lesion_study
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> from verydeep.report import plot_lesions
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> figure = plot_lesions(lesion_study(model, data.test, "test"), metric="loss")
    """
    networks = with_names(lesions)
    with themed_figure(path, 1.2 + 5.0 * len(networks), 4.0, theme) as (figure, palette):
        panels = figure.subplots(1, len(networks), squeeze=False)[0]
        for axes, (name, study) in zip(panels, networks, strict=True):
            _draw_study(axes, study, metric, palette)
            axes.set_title(name, parse_math=False)
            _scale(axes, metric == "error" and study.measure == "accuracy", log)
            if not log:
                least = least_extent(metric, getattr(study.baseline, metric), lesion_noise(study, metric))
                low, high = axes.get_ylim()
                axes.set_ylim(widen(low, high, least, fraction=metric == "error"))
    return figure


def _draw_study(axes: Axes, study: LesionStudy, metric: Metric, palette: Palette) -> None:
    count = len(study.layers)
    marker = "o" if count <= _MOST_MARKERS else ""
    values: Array = getattr(study, metric)
    axes.plot(
        range(1, count + 1), values, color=palette.colours[0], marker=marker, markersize=4, label="one layer closed"
    )
    baseline, noise = getattr(study.baseline, metric), lesion_noise(study, metric)
    if noise is not None:
        low, high = values - INTERVAL * noise, values + INTERVAL * noise
        x = range(1, count + 1)
        axes.fill_between(x, low, high, color=palette.colours[0], alpha=0.2, linewidth=0, label="95 % interval")
    axes.axhline(baseline, color=palette.colours[1], linestyle="--", linewidth=1.5, label="no layer closed")
    axes.set(xlabel="closed layer (from 1)", xticks=layer_ticks(count))
    axes.set_ylabel(measured_on(_label(metric, study.measure), study.split), parse_math=False)


def _scale(axes: Axes, percent: bool, log: bool) -> None:
    style_axes(axes)
    add_legend(axes)
    if log:
        axes.set_yscale("log")
    if percent:
        axes.yaxis.set_major_formatter(PercentFormatter(1))


def plot_pair_lesions(
    pairs: PairLesion, path: FigurePath = None, *, metric: Metric = "error", theme: Theme = "light"
) -> ThemedFigure:
    """Draw the cost of closing two layers together, and how much that exceeds the sum of closing each alone.

    Args:
        pairs: The study of pairs.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        metric: The metric to draw.
        theme: Colours for a light or a dark background.

    Example:
        >>> from verydeep.analysis import pair_lesions
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> from verydeep.report import plot_pair_lesions
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> figure = plot_pair_lesions(pair_lesions(model, data.test, "test"))
    """
    values: Array = getattr(pairs, metric)
    more = interaction(values, getattr(pairs.baseline, metric))
    percent = PercentFormatter(1) if metric == "error" and pairs.measure == "accuracy" else None
    with themed_figure(path, 10.5, 6.2, theme) as (figure, palette):
        left, right = figure.subplots(1, 2)
        image = draw_heat_map(left, values, palette, Normalize(), palette.sequential)
        add_colour_bar(left, image, measured_on(_label(metric, pairs.measure), pairs.split), style=percent)
        left.set(title="both layers closed", xlabel=LAYER, ylabel=LAYER)
        image = draw_heat_map(right, more, palette, CenteredNorm(0, largest_deviation(more)), palette.diverging)
        add_colour_bar(right, image, "excess over the sum of both single lesions", style=percent)
        right.set(title="interaction of the two layers", xlabel=LAYER)
        for axes in (left, right):
            axes.set_box_aspect(1)
    return figure


def interaction(values: Array, baseline: float) -> Array:
    """The rise with two layers closed, minus the rises with each closed alone; zero on the diagonal."""
    alone = np.diagonal(values)
    more = values - alone[:, None] - alone[None, :] + baseline
    np.fill_diagonal(more, 0)
    return more


def plot_depth_usage(
    usage: DepthUsage | GreedyLesion, path: FigurePath = None, *, theme: Theme = "light"
) -> ThemedFigure:
    """Draw accuracy (or R2) against the number of layers kept, what may be lost, and the fewest layers within it.

    The band is the 95 % interval of the difference to the full network. The same order on the training samples, as in
    the paper, is dashed.

    Args:
        usage: The depth usage, or the greedy curve alone.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        theme: Colours for a light or a dark background.

    Example:
        >>> from verydeep.analysis import depth_usage, greedy_lesions
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> from verydeep.report import plot_depth_usage
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> figure = plot_depth_usage(depth_usage(greedy_lesions(model, data.test, "test")))
    """
    greedy = usage if isinstance(usage, GreedyLesion) else usage.greedy
    with themed_figure(path, 7.5, 5.6, theme) as (figure, palette):
        if isinstance(usage, GreedyLesion):
            _draw_curve(figure.add_subplot(), greedy, palette)
            return figure
        axes, strip = figure.subplots(2, 1, height_ratios=(10, 1))
        _draw_curve(axes, greedy, palette)
        _draw_choice(axes, usage, palette)
        add_legend(axes, "above")
        _draw_strip(strip, usage, palette)
    return figure


def _draw_curve(axes: Axes, greedy: GreedyLesion, palette: Palette) -> None:
    accuracy, total = 1 - greedy.error, len(greedy.layers)
    marker = "o" if total <= _MOST_MARKERS else ""
    kept = total - np.arange(len(accuracy))
    label = split_name(greedy.split) or "measured"
    axes.plot(kept, accuracy, color=palette.colours[0], marker=marker, markersize=4, label=label)
    if greedy.band is not None:
        lower, upper = 1 - greedy.band[1], 1 - greedy.band[0]
        axes.fill_between(kept, lower, upper, color=palette.colours[0], alpha=0.2, linewidth=0)
    if greedy.training is not None:
        label = "training set, as in the paper"
        axes.plot(kept, 1 - greedy.training.error, color=palette.colours[3], linestyle="--", linewidth=1.2, label=label)
    axes.set_xlabel("layers kept")
    name = MEASURES.get(greedy.measure, greedy.measure)
    axes.set_ylabel(measured_on(name, "" if greedy.training else greedy.split), parse_math=False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    percent = greedy.measure == "accuracy"
    if percent:
        axes.yaxis.set_major_formatter(PercentFormatter(1))
    elif accuracy.min() < LOWEST_R2 < accuracy.max():
        axes.set_ylim(bottom=LOWEST_R2)
    least = least_extent("error", float(accuracy[0]), greedy.standard_error)
    low, high = axes.get_ylim()
    axes.set_ylim(widen(low, high, least, fraction=percent))
    style_axes(axes)


def _draw_choice(axes: Axes, usage: DepthUsage, palette: Palette) -> None:
    accuracy, total = 1 - usage.greedy.error, len(usage.greedy.layers)
    lowest, measure = accuracy[0] - usage.within, usage.greedy.measure
    axes.axhspan(lowest, accuracy[0], color=palette.colours[2], alpha=0.3, linewidth=0)
    label = f"lowest {MEASURES.get(measure, measure)} allowed: {usage.within_text} below all {total} layers"
    axes.axhline(lowest, color=palette.colours[2], linestyle="--", linewidth=1.2, label=label)
    chosen = accuracy[total - len(usage.kept)]
    label = f"{usage.count_text}: {score(measure, chosen)}"
    axes.plot([len(usage.kept)], [chosen], "D", color=palette.colours[1], markersize=9, label=label)


def _draw_strip(axes: Axes, usage: DepthUsage, palette: Palette) -> None:
    total = len(usage.greedy.layers)
    for layers, colour in ((usage.kept, palette.colours[0]), (usage.idle, palette.faint)):
        axes.bar([layer + 1 for layer in layers], 1, width=0.9 if total <= _MOST_MARKERS else 1.0, color=colour)
    axes.set(xlim=(0.5, total + 0.5), ylim=(0, 1), yticks=[], xticks=layer_ticks(total))
    axes.set_xlabel("layer, from 1 (coloured: kept, grey: idle)")
    axes.spines[:].set_visible(False)
