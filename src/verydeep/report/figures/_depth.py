"""Score against depth: what `how_deep` found."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator, PercentFormatter

from verydeep.depth import DepthAnswer
from verydeep.report.figures._axes import (
    Array,
    accuracy_at,
    choose_ticks,
    error_position,
    error_ticks,
    spread_labels,
    style_axes,
)
from verydeep.report.figures._depth_layout import (
    ScoreCurve,
    answer_words,
    axis_names,
    below_the_axis,
    depth_ticks,
    is_spaced_by_error,
    marked_point,
    score_curves,
    score_limits,
    score_lines,
)
from verydeep.report.figures._theme import FigurePath, Palette, Theme, ThemedFigure, themed_figure

_WIDTH, _HEIGHT = 9.0, 5.0
_ROOM = 0.035  # of the axis, on either side of the curves
_LABEL = 0.05  # of the height of the axes, for a line of text
_DIGIT = 0.019  # of the width of the axes
_LONGEST_NOTE = 110


def plot_depth(answer: DepthAnswer, path: FigurePath = None, *, theme: Theme = "light") -> ThemedFigure:
    """Draw the score on held-out data against depth, with the answer and its interval.

    Highway and plain networks have a curve each, with bands of 95 %; the thinner curve is the deep network with its
    layers closed one after another. Horizontal lines are other models, on test data, and a blind guess.

    Args:
        answer: What `how_deep` found.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        theme: Colours for a light or a dark background.

    Example:
        >>> from verydeep.depth import DepthAnswer, DepthPoint
        >>> from verydeep.report import plot_depth
        >>> points = tuple(DepthPoint("highway", depth, loss, score) for depth, loss, score in
        ...     ((0, 0.9, 0.7), (1, 0.2, 0.95), (2, 0.19, 0.95)))
        >>> figure = plot_depth(DepthAnswer("moons", 1, "highway", (1, 2), 2, "highway", points))
    """
    limits = score_limits(answer)
    with themed_figure(path, _WIDTH, _HEIGHT, theme) as (figure, palette):
        axes = figure.add_subplot()
        across = _ends(answer)
        axes.set_xscale("function", functions=(_position, _depth))
        axes.set_xlim(*_depth(np.array(across)))
        _label_scores(axes, answer, limits)
        _draw_answer(axes, answer, across, palette)
        for curve in score_curves(answer):
            _draw_curve(axes, curve, limits, palette)
        _draw_lines(axes, answer, limits, palette)
        style_axes(axes)
        axes.grid(visible=False, axis="x")
        _label_depths(axes, answer, across)
        axes.set_title(f"How deep must a network be for {answer.name}?", loc="left", parse_math=False)
        if axes.get_legend_handles_labels()[0]:
            for text in figure.legend(frameon=False, loc="outside lower left", ncols=2).get_texts():
                text.set_parse_math(False)
    return figure


def _position(depth: Array) -> Array:
    return np.asarray(np.log2(1 + np.maximum(depth, -0.99)), float)


def _depth(position: Array) -> Array:
    return np.asarray(np.exp2(position) - 1, float)


def _ends(answer: DepthAnswer) -> tuple[float, float]:
    """The ends of the axis of depth, in powers of 2."""
    depths = [depth for curve in score_curves(answer) for depth in curve.depth] or [0]
    low, high = (float(_position(np.array(float(depth)))) for depth in (min(depths), max(depths)))
    room = _ROOM * (high - low) or 1.0
    return low - room, high + room


def _draw_answer(axes: Axes, answer: DepthAnswer, across: tuple[float, float], palette: Palette) -> None:
    """Shade the interval, and put a ring around the answer."""
    marked = marked_point(answer)
    if marked is None:
        return
    depth, value = marked
    if answer.interval is not None:
        low, high = (_position(np.array(float(end))) for end in answer.interval)
        room = 0.014 * (across[1] - across[0])
        axes.axvspan(
            *_depth(np.array([low - room, high + room])), color=palette.faint, alpha=0.45, linewidth=0, zorder=0
        )
    ring: dict[str, Any] = {
        "markerfacecolor": "none",
        "markeredgecolor": palette.ink,
        "markeredgewidth": 1.8,
        "markersize": 13,
    }
    axes.plot([depth], [value], "o", zorder=5, label=f"the answer: {answer_words(answer)}", **ring)


def _draw_curve(axes: Axes, curve: ScoreCurve, limits: tuple[float, float], palette: Palette) -> None:
    colour, lowest = palette.colours[curve.colour], limits[0]
    values, depths = np.array(curve.score, float), np.array(curve.depth, float)
    width, marker = (1.2, "") if curve.thin else (2.0, "o")
    drawn = values if curve.thin else np.maximum(values, lowest)
    axes.plot(depths, drawn, color=colour, linewidth=width, marker=marker, markersize=5, label=curve.name)
    below = values < lowest
    if below.any() and not curve.thin:
        axes.plot(depths[below], values[below] * 0 + lowest, "v", color=colour, markersize=10, clip_on=False, zorder=4)
    if len(curve.low) != len(values):
        return
    low, high = np.array(curve.low, float), np.array(curve.high, float)
    if len(values) > 1:
        axes.fill_between(depths, low, high, color=colour, alpha=0.1 if curve.thin else 0.2, linewidth=0)
    else:
        axes.vlines(depths, low, high, color=colour, linewidth=width)


def _draw_lines(axes: Axes, answer: DepthAnswer, limits: tuple[float, float], palette: Palette) -> None:
    """Draw what does not depend on depth, with labels on the right that do not overlap."""
    lines = [(value, text) for value, text in score_lines(answer) if limits[0] <= value <= limits[1]]
    place = error_position if is_spaced_by_error(answer) else float
    low, high = place(limits[0]), place(limits[1])
    wanted = [(place(value) - low) / (high - low) for value, _ in lines]
    places = spread_labels(wanted, _LABEL, 0, 1)
    for (value, text), start, end in zip(lines, wanted, places, strict=True):
        axes.axhline(value, color=palette.ink, linestyle=":", linewidth=1.2, alpha=0.75, zorder=1)
        lead: dict[str, Any] = {
            "transform": axes.transAxes,
            "clip_on": False,
            "color": palette.ink,
            "linewidth": 0.8,
            "alpha": 0.75,
        }
        axes.plot([1.0, 1.015], [start, end], **lead)
        axes.text(1.02, end, text, transform=axes.transAxes, va="center", fontsize="small", parse_math=False)


def _label_scores(axes: Axes, answer: DepthAnswer, limits: tuple[float, float]) -> None:
    y_name = axis_names(answer)[1]
    if is_spaced_by_error(answer):
        axes.set_yscale("function", functions=(np.vectorize(error_position), np.vectorize(accuracy_at)))
        low, high = error_position(limits[0]), error_position(limits[1])
        places = [((error_position(tick) - low) / (high - low), f"{100 * tick:g}%") for tick in error_ticks(limits)]
        shown = choose_ticks([(at, text, _LABEL) for at, text in places])
        axes.set_yticks([float(text[:-1]) / 100 for _, text in shown], [text for _, text in shown])
        axes.yaxis.set_minor_locator(NullLocator())
        y_name += " (spaced by error)"
    elif "accuracy" in answer.measure:
        axes.yaxis.set_major_locator(MaxNLocator(6))
        axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set_ylim(*limits)
    axes.set_ylabel(y_name, parse_math=False)


def _label_depths(axes: Axes, answer: DepthAnswer, across: tuple[float, float]) -> None:
    depths: Sequence[int] = depth_ticks(answer)
    length = across[1] - across[0]
    places = [((float(_position(np.array(float(d)))) - across[0]) / length, str(d)) for d in depths]
    chosen = [int(text) for _, text in choose_ticks([(at, text, _DIGIT * (len(text) + 0.6)) for at, text in places])]
    axes.xaxis.set_major_locator(FixedLocator(chosen))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(chosen, [str(depth) for depth in chosen])
    name = axis_names(answer)[0]
    if left_out := below_the_axis(answer):
        note = f"below the axis: {'; '.join(left_out)}"
        name += "\n" + (note if len(note) <= _LONGEST_NOTE else note[: _LONGEST_NOTE - 1] + "…")
    axes.set_xlabel(name, parse_math=False)
