"""The error of networks after random layers were closed or swapped."""

from collections.abc import Sequence

from matplotlib.ticker import MaxNLocator, PercentFormatter

from verydeep.analysis import RandomChanges
from verydeep.report.figures._axes import add_legend, style_axes, with_names
from verydeep.report.figures._lesions import measured_on
from verydeep.report.figures._theme import FigurePath, Theme, ThemedFigure, themed_figure
from verydeep.words import error_name

_LINES = ("-", "--", ":", "-.")
_MARKERS = ("o", "s", "^", "D")


def plot_random_changes(
    changes: RandomChanges | Sequence[tuple[str, RandomChanges]], path: FigurePath = None, *, theme: Theme = "light"
) -> ThemedFigure:
    """Draw the error against the number of layers that were closed or swapped: the mean and the range over draws.

    Args:
        changes: The result for one network, or those of several with their names; all must be of the same kind.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        theme: Colours for a light or a dark background.

    Example:
        >>> from verydeep.analysis import reorder_study
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> from verydeep.report import plot_random_changes
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=5, width=16, input_shape=(1, 8, 8))
        >>> figure = plot_random_changes(reorder_study(model, data.test, [0, 2, 4], split="test"))
    """
    networks = with_names(changes)
    with themed_figure(path, 6.2, 4.0, theme) as (figure, palette):
        axes = figure.subplots()
        for number, (name, found) in enumerate(networks):
            colour = palette.colours[number % len(palette.colours)]
            mean, low, high = found.error.mean(1), found.error.min(1), found.error.max(1)
            axes.fill_between(found.counts, low, high, color=colour, alpha=0.2, linewidth=0)
            axes.plot(
                found.counts,
                mean,
                _LINES[number % 4] + _MARKERS[number % 4],
                color=colour,
                markersize=4,
                label=name or "mean",
            )
            if len(networks) == 1:
                axes.axhline(found.baseline.error, color=palette.ink, linestyle=":", linewidth=1, label="unchanged")
        first = networks[0][1]
        axes.set_xlabel(f"layers {first.change} at random")
        axes.set_ylabel(measured_on(error_name(first.measure), first.split), parse_math=False)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if "accuracy" in first.measure:
            axes.yaxis.set_major_formatter(PercentFormatter(1))
        style_axes(axes)
        add_legend(axes)
    return figure
