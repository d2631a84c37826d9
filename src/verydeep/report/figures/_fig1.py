"""The paper's Figure 1: the best curve of every network, and the mean of the ten best."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from verydeep.report.figures._axes import plain_axes
from verydeep.report.figures._theme import Look, Theme, drawn


def plot_fig1(
    best: Mapping[str, Sequence[float]], mean: Mapping[str, Sequence[float]], path: Path, theme: Theme = "light"
) -> Figure:
    """Draw training loss over epochs on a logarithmic axis.

    Args:
        best: The curve of each network's best run, by a name such as `highway-50`; left.
        mean: The mean of its ten best; right.
        path: The picture, by its suffix PNG, SVG or PDF.
        theme: On white or on black.
    """
    with drawn(path, 10, 4.5, theme) as (figure, look):
        left, right = figure.subplots(1, 2, sharey=True)
        for axes, curves, title in ((left, best, "best of the search"), (right, mean, "mean of the ten best")):
            _draw(axes, curves, look)
            axes.set(title=title, xlabel="epoch", yscale="log")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
            plain_axes(axes)
        left.set_ylabel("mean cross-entropy, training set")
        if best:
            figure.legend(*left.get_legend_handles_labels(), frameon=False, loc="outside right center")
    return figure


def _draw(axes: Axes, curves: Mapping[str, Sequence[float]], look: Look) -> None:
    """A colour a depth; highways solid, plain networks dashed."""
    depths = sorted({name.rpartition("-")[2] for name in curves}, key=int)
    for name, losses in curves.items():
        family, _, depth = name.rpartition("-")
        colour = look.colours[depths.index(depth) % len(look.colours)]
        epochs = range(1, len(losses) + 1)
        line = axes.plot(epochs, losses, "-" if family == "highway" else "--", color=colour, linewidth=1.6)
        line[0].set(label=name.replace("-", " "), marker="o" if len(losses) == 1 else "")
