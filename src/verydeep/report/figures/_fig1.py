"""The paper's Figure 1, training curves of the best settings, and the loss of every setting against its gate bias."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from verydeep.report.figures._axes import style_axes
from verydeep.report.figures._theme import FigurePath, Palette, Theme, ThemedFigure, themed_figure

_MARKERS = "osD^v*"


def plot_fig1(
    best: Mapping[str, Sequence[float]],
    mean: Mapping[str, Sequence[float]],
    path: FigurePath = None,
    *,
    theme: Theme = "light",
) -> ThemedFigure:
    """Draw training loss over epochs on a logarithmic axis.

    Args:
        best: The curve of each network's best run, by a name such as `highway-50`; drawn on the left.
        mean: The mean over its ten best runs; drawn on the right.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        theme: Colours for a light or a dark background.
    """
    with themed_figure(path, 10, 4.5, theme) as (figure, palette):
        left, right = figure.subplots(1, 2, sharey=True)
        for axes, curves, title in ((left, best, "best of the search"), (right, mean, "mean of the ten best")):
            _draw(axes, curves, palette)
            axes.set(title=title, xlabel="epoch", yscale="log")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
            style_axes(axes)
        left.set_ylabel("mean cross-entropy, training set")
        if best:
            figure.legend(*left.get_legend_handles_labels(), frameon=False, loc="outside right center")
    return figure


def _draw(axes: Axes, curves: Mapping[str, Sequence[float]], palette: Palette) -> None:
    """Draw one colour per depth; highway networks solid, plain networks dashed."""
    depths = sorted({name.rpartition("-")[2] for name in curves}, key=int)
    for name, losses in curves.items():
        family, _, depth = name.rpartition("-")
        colour = palette.colours[depths.index(depth) % len(palette.colours)]
        epochs = range(1, len(losses) + 1)
        line = axes.plot(epochs, losses, "-" if family == "highway" else "--", color=colour, linewidth=1.6)
        line[0].set(label=name.replace("-", " "), marker="o" if len(losses) == 1 else "")


def plot_gate_bias(
    settings: Mapping[int, Sequence[tuple[float, float]]],
    epochs: int,
    path: FigurePath = None,
    *,
    theme: Theme = "light",
) -> ThemedFigure:
    """Draw the loss of every setting twice: against the gate bias, and against depth times its sigmoid.

    Args:
        settings: By depth, the gate bias and the training loss of every setting that did not diverge.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        epochs: The number of epochs after which the loss was measured.
        theme: Colours for a light or a dark background.
    """
    with themed_figure(path, 10, 4.2, theme) as (figure, palette):
        left, right = figure.subplots(1, 2, sharey=True)
        for number, (depth, points) in enumerate(sorted(settings.items())):
            bias, loss = np.array(points, dtype=float).reshape(-1, 2).T
            mark = {"marker": _MARKERS[number % len(_MARKERS)], "color": palette.colours[number % len(palette.colours)]}
            for axes, x in ((left, bias), (right, depth / (1 + np.exp(-bias)))):
                axes.scatter(x, loss, s=18, alpha=0.8, linewidths=0, label=f"{depth} layers", **mark)
        left.set(xlabel="gate bias", ylabel=f"training loss after {epochs} epochs", yscale="log")
        right.set(xlabel="open layers at the start: depth · sigmoid(gate bias)", xscale="log")
        for axes in (left, right):
            style_axes(axes)
        if settings:
            figure.legend(*left.get_legend_handles_labels(), frameon=False, loc="outside right center")
    return figure
