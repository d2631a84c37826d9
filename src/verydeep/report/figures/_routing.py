"""Differences in gate activity between classes, as in the paper's Figure 3, and the similarity of classes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm, ListedColormap

from verydeep.analysis import NOISE, ClassRouting, is_significant
from verydeep.errors import UserError, unknown
from verydeep.report.figures._axes import LAYER, Array, add_colour_bar, draw_heat_map, layer_grid
from verydeep.report.figures._gates import largest_deviation
from verydeep.report.figures._theme import FigurePath, Palette, Theme, ThemedFigure, themed_figure

_MOST_CLASSES = 8  # columns that fit


def plot_routing(
    routing: ClassRouting, path: FigurePath = None, *, classes: Sequence[str] | None = None, theme: Theme = "light"
) -> ThemedFigure:
    """Draw Figure 3: the mean gate activity of a class minus that of all samples, one column per class.

    Differences below three standard errors are faded, because they may be noise.

    Args:
        routing: The result.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        classes: The classes to draw; by default, the first class and the one that differs most from it.
        theme: Colours for a light or a dark background.

    Example:
        >>> from verydeep.analysis import class_routing
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> from verydeep.report import plot_routing
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> routing = class_routing(model, data.test, data.classes)
        >>> figure = plot_routing(routing, "routing.svg", classes=["0", "7"], theme="dark")
    """
    shown = choose_classes(routing, classes)
    differences = [layer_grid([layer[number] for layer in routing.difference]) for number in shown]
    errors = [layer_grid([layer[number] for layer in routing.standard_error]) for number in shown]
    scale = largest_deviation(np.stack(differences))
    with themed_figure(path, 0.6 + 3.4 * len(shown), 5.2, theme) as (figure, palette):
        panels = list(figure.subplots(1, len(shown), squeeze=False, sharey=True)[0])
        for axes, number, difference, error in zip(panels, shown, differences, errors, strict=True):
            image = draw_heat_map(axes, difference, palette, CenteredNorm(0, scale), palette.diverging)
            _fade_noise(axes, difference, error, palette)
            axes.set_title(f"{routing.classes[number]}  (n = {routing.counts[number]:,})", parse_math=False)
            axes.set_xlabel("block (from 1)")
            add_colour_bar(axes, image, f"{routing.grouped_by} mean − overall mean of the gate")
        panels[0].set_ylabel(LAYER)
        figure.supxlabel(f"faded: within {NOISE} standard errors of zero", fontsize="small")
    return figure


def choose_classes(routing: ClassRouting, classes: Sequence[str] | None = None) -> list[int]:
    """Number the classes to show: those given, or the first and the one that differs most from it."""
    if classes is None:
        distances = np.nan_to_num(routing.distance[0])
        return sorted({0, int(distances.argmax())})
    for name in classes:
        if name not in routing.classes:
            raise unknown("class", name, routing.classes)
    if not 0 < len(classes) <= _MOST_CLASSES:
        raise UserError(f"choose from 1 to {_MOST_CLASSES} classes to draw, got {len(classes)}")
    return [routing.classes.index(name) for name in classes]


def _fade_noise(axes: Axes, difference: Array, error: Array, palette: Palette) -> None:
    """Cover differences that may be noise with a translucent veil; the image below keeps its values."""
    veil = np.where(is_significant(difference, error) | ~np.isfinite(difference), np.nan, 1.0)
    image = axes.images[0]
    axes.imshow(
        np.ma.masked_invalid(veil),
        cmap=ListedColormap([palette.paper]),
        alpha=0.8,
        aspect="auto",
        extent=image.get_extent(),
        interpolation=image.get_interpolation(),
    )


def plot_class_distances(routing: ClassRouting, path: FigurePath = None, *, theme: Theme = "light") -> ThemedFigure:
    """Draw the distances between the mean gates of classes, and the dendrogram that puts similar classes side by side.

    Args:
        routing: The result.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        theme: Colours for a light or a dark background.

    Example:
        >>> from verydeep.analysis import class_routing
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> from verydeep.report import plot_class_distances
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> figure = plot_class_distances(class_routing(model, data.test, data.classes))
    """
    tree = layout_dendrogram(routing.linkage)
    order = tree.order
    side = min(max(0.32 * len(order), 3.5), 14.0)
    with themed_figure(path, side + 3.6, side + 1.2, theme) as (figure, palette):
        branches, axes = figure.subplots(1, 2, width_ratios=(1, side / 1.6))
        for corners in tree.branches:
            branches.plot(*zip(*corners, strict=True), color=palette.ink, linewidth=1)
        branches.set(xlim=(branches.get_xlim()[1], 0), ylim=(len(order) - 0.5, -0.5), yticks=[], xlabel="distance")
        branches.spines[["top", "left", "right"]].set_visible(False)
        branches.tick_params(labelsize="small")
        distances = routing.distance[np.ix_(order, order)]
        image = axes.imshow(distances, cmap=palette.sequential, interpolation="none", vmin=0)
        axes.set_aspect("auto")  # as high as the tree, so that its leaves are level with the rows
        _label_classes(axes, [routing.classes[leaf] for leaf in order], side)
        figure.colorbar(image, ax=axes, label="root mean square difference of mean gates", shrink=0.8, aspect=25)
    return figure


def _label_classes(axes: Axes, names: list[str], side: float) -> None:
    axes.tick_params(length=0)
    size = min(10.0, 60 * side / len(names))
    rotation = 90 if max(map(len, names)) > 3 else 0
    axes.set_xticks(range(len(names)), names, fontsize=size, rotation=rotation, parse_math=False)
    axes.set_yticks(range(len(names)), names, fontsize=size, parse_math=False)


@dataclass(frozen=True)
class Dendrogram:
    """A dendrogram.

    Attributes:
        order: The leaves, side by side.
        branches: Per join, the four corners of a bracket as (height, position among the leaves).
    """

    order: list[int]
    branches: list[list[tuple[float, float]]]


def layout_dendrogram(linkage: Array) -> Dendrogram:
    """Lay out the clustering of scipy's `linkage`, in which row k joins two earlier clusters into cluster n + k."""
    leaves = len(linkage) + 1
    members = {leaf: [leaf] for leaf in range(leaves)}
    for joined, (left, right, *_) in enumerate(linkage, leaves):
        members[joined] = members[int(left)] + members[int(right)]
    order = members[2 * leaves - 2]
    tops = {leaf: (0.0, float(place)) for place, leaf in enumerate(order)}  # per cluster: height, position
    branches = []
    for joined, (left, right, height, *_) in enumerate(linkage, leaves):
        (low, first), (high, second) = tops[int(left)], tops[int(right)]
        branches.append([(low, first), (float(height), first), (float(height), second), (high, second)])
        tops[joined] = (float(height), (first + second) / 2)
    return Dendrogram(order, branches)
