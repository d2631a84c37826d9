"""Test accuracy over epochs of the networks in the paper's tables, with the published values."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from verydeep.report.figures._axes import add_legend, style_axes
from verydeep.report.figures._theme import FigurePath, Palette, Theme, ThemedFigure, themed_figure

_FEW_EPOCHS = 5


@dataclass(frozen=True)
class TableCurves:
    """The curves of one network, drawn in one colour.

    Attributes:
        name: The name in the legend.
        curves: Per seed, the accuracy after each epoch.
        published: The published accuracy, or None if there is none.
    """

    name: str
    curves: Sequence[Sequence[float]]
    published: float | None


def plot_tables(
    panels: Sequence[tuple[str, Sequence[TableCurves]]], path: FigurePath = None, *, theme: Theme = "light"
) -> ThemedFigure:
    """Draw one panel per table.

    Args:
        panels: The title and the networks of each panel.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        theme: Colours for a light or a dark background.
    """
    with themed_figure(path, 5 * len(panels), 4.2, theme) as (figure, palette):
        for axes, (title, networks) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            _draw(axes, networks, palette)
            axes.set(title=title, xlabel="epoch", ylabel="accuracy, test set")
            axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=None))
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
            style_axes(axes)
            if networks:
                add_legend(axes)
            else:
                axes.text(0.5, 0.5, "no results yet", transform=axes.transAxes, ha="center", color=palette.ink)
    return figure


def _draw(axes: Axes, networks: Sequence[TableCurves], palette: Palette) -> None:
    for number, network in enumerate(networks):
        colour = palette.colours[number % len(palette.colours)]
        for seed, curve in enumerate(network.curves):
            style = "-" if number < len(palette.colours) else "-."
            line = axes.plot(range(1, len(curve) + 1), curve, style, color=colour, linewidth=1.4)
            line[0].set(label=network.name if seed == 0 else None, marker="o" if len(curve) == 1 else "")
        if network.published is not None:
            axes.axhline(network.published, linestyle="--", color=colour, linewidth=1)
    _set_lower_limit(axes, networks)


def _set_lower_limit(axes: Axes, networks: Sequence[TableCurves]) -> None:
    """Cut off the first epochs, so that the distance of the last ones from the published values is visible.

    Curves of a few epochs are shown whole.
    """
    targets = [network.published for network in networks if network.published is not None]
    curves = [curve for network in networks for curve in network.curves if curve]
    if targets and curves:
        lowest = min(curve[-1] if len(curve) > _FEW_EPOCHS else min(curve) for curve in curves)
        floor = min(targets) - 3 * (1 - max(targets))
        axes.set_ylim(min(floor, lowest - 0.5 * (1 - max(targets))), None)
