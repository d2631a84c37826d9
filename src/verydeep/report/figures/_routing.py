"""How gate activity differs between classes, as the paper's Figure 3, and which classes travel alike."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm, ListedColormap
from matplotlib.figure import Figure

from verydeep.analysis import NOISE, ClassRouting, is_significant
from verydeep.errors import UserError, unknown
from verydeep.report.figures._axes import Array, colour_bar, grid, heat
from verydeep.report.figures._gates import reach
from verydeep.report.figures._theme import Look, Theme, drawn
from verydeep.report.figures._tree import make_tree

_SHOWN = 8  # columns that can be read


def plot_routing(
    routing: ClassRouting, path: Path, classes: Sequence[str] | None = None, theme: Theme = "light"
) -> Figure:
    """Draw Figure 3: the mean gate activity of a class minus that of all samples, one column for each class.

    Differences below three standard errors are faded: they may be noise.

    Args:
        routing: What to draw.
        path: The picture, by its suffix PNG, SVG or PDF.
        classes: Which; the first class and the one most different from it unless given.
        theme: On white or on black.
    """
    shown = choose_classes(routing, classes)
    differences = [grid([layer[number] for layer in routing.difference]) for number in shown]
    errors = [grid([layer[number] for layer in routing.standard_error]) for number in shown]
    scale = reach(np.stack(differences))
    with drawn(path, 0.6 + 3.4 * len(shown), 5.2, theme) as (figure, look):
        panels = list(figure.subplots(1, len(shown), squeeze=False, sharey=True)[0])
        for axes, number, difference, error in zip(panels, shown, differences, errors, strict=True):
            image = heat(axes, difference, look, CenteredNorm(0, scale), look.diverging)
            _fade(axes, difference, error, look)
            axes.set_title(f"{routing.classes[number]}  (n = {routing.counts[number]:,})", parse_math=False)
            axes.set_xlabel("block")
            colour_bar(axes, image, "class mean − overall mean of the gate")
        panels[0].set_ylabel("layer")
        figure.supxlabel(f"faded: within {NOISE} standard errors of zero", fontsize="small")
    return figure


def choose_classes(routing: ClassRouting, classes: Sequence[str] | None = None) -> list[int]:
    """Numbers of the classes to show: those named, or the first and the one most different from it."""
    if classes is None:
        distances = np.nan_to_num(routing.distance[0])
        return sorted({0, int(distances.argmax())})
    for name in classes:
        if name not in routing.classes:
            raise unknown("class", name, routing.classes)
    if not 0 < len(classes) <= _SHOWN:
        raise UserError(f"choose from 1 to {_SHOWN} classes to draw, got {len(classes)}")
    return [routing.classes.index(name) for name in classes]


def _fade(axes: Axes, difference: Array, error: Array, look: Look) -> None:
    """Veil what may be noise; the values below stay as they are."""
    veil = np.where(is_significant(difference, error) | ~np.isfinite(difference), np.nan, 1.0)
    image = axes.images[0]
    axes.imshow(
        np.ma.masked_invalid(veil),
        cmap=ListedColormap([look.paper]),
        alpha=0.8,
        aspect="auto",
        extent=image.get_extent(),
        interpolation=image.get_interpolation(),
    )


def plot_class_distances(routing: ClassRouting, path: Path, theme: Theme = "light") -> Figure:
    """Draw how far classes are apart by their gates, similar ones side by side, and the tree that orders them.

    Args:
        routing: What to draw.
        path: The picture, by its suffix PNG, SVG or PDF.
        theme: On white or on black.
    """
    tree = make_tree(routing.linkage)
    order = tree.order
    side = min(max(0.32 * len(order), 3.5), 14.0)
    with drawn(path, side + 3.6, side + 1.2, theme) as (figure, look):
        branches, axes = figure.subplots(1, 2, width_ratios=(1, side / 1.6))
        for corners in tree.branches:
            branches.plot(*zip(*corners, strict=True), color=look.ink, linewidth=1)
        branches.set(xlim=(branches.get_xlim()[1], 0), ylim=(len(order) - 0.5, -0.5), yticks=[], xlabel="distance")
        branches.spines[["top", "left", "right"]].set_visible(False)
        branches.tick_params(labelsize="small")
        distances = routing.distance[np.ix_(order, order)]
        image = axes.imshow(distances, cmap=look.sequential, interpolation="none", vmin=0)
        axes.set_aspect("auto")  # nearly square, and as high as the tree, whose leaves stand at its rows
        _name(axes, [routing.classes[leaf] for leaf in order], side)
        figure.colorbar(image, ax=axes, label="root mean square difference of mean gates", shrink=0.8, aspect=25)
    return figure


def _name(axes: Axes, names: list[str], side: float) -> None:
    axes.tick_params(length=0)
    size = min(10.0, 60 * side / len(names))
    turned = 90 if max(map(len, names)) > 3 else 0
    axes.set_xticks(range(len(names)), names, fontsize=size, rotation=turned, parse_math=False)
    axes.set_yticks(range(len(names)), names, fontsize=size, parse_math=False)
