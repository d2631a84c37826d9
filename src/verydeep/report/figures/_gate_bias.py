"""How well settings of different depths learn, over their gate bias and over how many layers start open."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from verydeep.report.figures._axes import plain_axes
from verydeep.report.figures._theme import Theme, drawn

_MARKERS = "osD^v*"


def plot_gate_bias(
    settings: Mapping[int, Sequence[tuple[float, float]]], path: Path, epochs: int, theme: Theme = "light"
) -> Figure:
    """Draw the loss of every setting twice: over the gate bias, and over depth times its sigmoid.

    Args:
        settings: By depth, the gate bias and the training loss of every setting that did not diverge.
        path: The picture, by its suffix PNG, SVG or PDF.
        epochs: After how many the loss is.
        theme: On white or on black.
    """
    with drawn(path, 10, 4.2, theme) as (figure, look):
        left, right = figure.subplots(1, 2, sharey=True)
        for number, (depth, points) in enumerate(sorted(settings.items())):
            bias, loss = np.array(points, dtype=float).reshape(-1, 2).T
            mark = {"marker": _MARKERS[number % len(_MARKERS)], "color": look.colours[number % len(look.colours)]}
            for axes, x in ((left, bias), (right, depth / (1 + np.exp(-bias)))):
                axes.scatter(x, loss, s=18, alpha=0.8, linewidths=0, label=f"{depth} layers", **mark)
        left.set(xlabel="gate bias", ylabel=f"training loss after {epochs} epochs", yscale="log")
        right.set(xlabel="open layers at the start: depth · sigmoid(gate bias)", xscale="log")
        for axes in (left, right):
            plain_axes(axes)
        if settings:
            figure.legend(*left.get_legend_handles_labels(), frameon=False, loc="outside right center")
    return figure
