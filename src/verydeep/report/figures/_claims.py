"""Pictures of experiments on the paper's statements: losses of many cases, and losses along one number."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from verydeep.report.figures._axes import style_axes
from verydeep.report.figures._theme import FigurePath, Palette, Theme, ThemedFigure, themed_figure

_MARKERS = "osD^v*P"
_LINES = ("-", "--", ":", "-.")
_SHORT = 100  # times the lowest value of an axis
_MOST_MARKERS = 20  # on a line
_INTERVAL = "95 % interval"

Points = Sequence[tuple[str, float]]
Curve = Sequence[tuple[float, float]]
Band = Sequence[tuple[float, float, float]]  # place, low, high


def plot_claim_points(
    panels: Mapping[str, Mapping[str, Points]],
    path: FigurePath = None,
    *,
    rows: str,
    values: str,
    line: tuple[float, str],
    worst: float,
    theme: Theme = "light",
) -> ThemedFigure:
    """Draw the value of every case: a row per case, a marker per series.

    Args:
        panels: By the title of the panel and the name of the series, the cases and their values.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        rows: What the cases are.
        values: What the values are.
        line: Where a dotted line is drawn, and its name.
        worst: Values above it, and infinite ones, are drawn at the right edge.
        theme: Colours for a light or a dark background.
    """
    names = list(dict.fromkeys(name for series in panels.values() for points in series.values() for name, _ in points))
    edge = 1.3 * worst
    with themed_figure(path, 9.5, 1.6 + 0.27 * len(names), theme) as (figure, palette):
        grid = figure.subplots(1, max(1, len(panels)), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (title, series) in zip(grid, panels.items(), strict=False):
            for number, (name, points) in enumerate(series.items()):
                height = 0.16 * (number - (len(series) - 1) / 2)
                axes.plot(
                    [min(value, edge) for _, value in points],
                    [names.index(case) + height for case, _ in points],
                    _MARKERS[number % len(_MARKERS)],
                    color=palette.colours[number % len(palette.colours)],
                    label=name,
                    markersize=5,
                )
            axes.axvline(line[0], color=palette.ink, linestyle=":", linewidth=1, label=line[1])
            axes.set(title=title, xlabel=values, xscale="log")
            _label_plainly(axes.xaxis)
            style_axes(axes)
        grid[0].set_yticks(range(len(names)), names)
        grid[0].invert_yaxis()
        grid[0].set_ylabel(rows)
        figure.legend(*grid[0].get_legend_handles_labels(), frameon=False, loc="outside right center")
    return figure


def plot_claim_lines(
    panels: Mapping[str, Mapping[str, Curve]],
    path: FigurePath = None,
    *,
    x: str,
    y: str,
    line: tuple[float, str] | None = None,
    bands: Mapping[str, Band] | None = None,
    log_x: bool = False,
    log_y: bool = True,
    theme: Theme = "light",
) -> ThemedFigure:
    """Draw values along one number, a line per series; a cross at the top stands for a value that is not finite.

    Args:
        panels: By the title of the panel and the name of the line, its points.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        x: The name of the horizontal axis.
        y: The name of the vertical axis.
        line: Where a dotted horizontal line is drawn, and its name; by default, none is.
        bands: By the name of a line, the interval around it; by default, none is drawn.
        log_x: Whether the horizontal axis is logarithmic.
        log_y: Whether the vertical axis is logarithmic.
        theme: Colours for a light or a dark background.
    """
    with themed_figure(path, 3.2 + 3.6 * max(1, len(panels)), 3.8, theme) as (figure, palette):
        grid = figure.subplots(1, max(1, len(panels)), sharey=True, squeeze=False)[0]
        diverged = False
        for axes, (title, lines) in zip(grid, panels.items(), strict=False):
            diverged |= _draw_lines(axes, lines, bands or {}, palette)
            if line is not None:
                axes.axhline(line[0], color=palette.ink, linestyle=":", linewidth=1, label=line[1])
            axes.set(title=title, xlabel=x)
            if log_x:
                axes.set_xscale("log")
                axes.set_xticks(sorted({place for points in lines.values() for place, _ in points}))
                axes.xaxis.set_major_formatter(FuncFormatter(_plain))
                axes.xaxis.set_minor_formatter(NullFormatter())
            else:
                axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            if log_y:
                axes.set_yscale("log")
                _label_plainly(axes.yaxis)
            style_axes(axes)
        grid[0].set_ylabel(y)
        if diverged:
            grid[0].plot([], [], "x", color=palette.ink, label="diverged")
        figure.legend(*grid[0].get_legend_handles_labels(), frameon=False, loc="outside right center")
    return figure


def _label_plainly(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers, over a short range also between the powers of ten."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7) if high < _SHORT * low else (1,)))
    axis.set_major_formatter(FuncFormatter(_plain))
    axis.set_minor_formatter(NullFormatter())


def _plain(value: float, _: int | None = None) -> str:
    return f"{value:g}"


def _draw_lines(axes: Axes, lines: Mapping[str, Curve], bands: Mapping[str, Band], palette: Palette) -> bool:
    """Draw the lines of a panel; whether a value was not finite."""
    diverged = False
    for number, (name, points) in enumerate(lines.items()):
        finite = [(x, y) for x, y in points if math.isfinite(y)]
        missing = [x for x, y in points if not math.isfinite(y)]
        colour = palette.colours[number % len(palette.colours)]
        axes.plot(
            [x for x, _ in finite],
            [y for _, y in finite],
            _LINES[number % len(_LINES)] + _MARKERS[number % len(_MARKERS)],
            color=colour,
            label=name,
            markersize=4,
            markevery=max(1, len(finite) // _MOST_MARKERS),
        )
        if missing:
            axes.plot(
                missing, [1.0] * len(missing), "x", color=colour, transform=axes.get_xaxis_transform(), clip_on=False
            )
            diverged = True
        if name in bands:
            places, low, high = zip(*bands[name], strict=True)
            axes.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0, label=_INTERVAL)
    return diverged
