"""The confusion matrix as a heat map."""

from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.ticker import FixedLocator, PercentFormatter

from verydeep.report.figures._theme import FigurePath, Theme, ThemedFigure, themed_figure
from verydeep.training import Confusion

_MOST_WITH_COUNTS = 25  # classes; with more, the counts would be too small to read
_MOST_WITH_NAMES = 150  # classes; with more, the names would be too small to read
_SHORT_NAME = 3  # characters that fit under a column without rotation


def plot_confusion(
    confusion: Confusion, path: FigurePath = None, *, title: str = "", theme: Theme = "light"
) -> ThemedFigure:
    """Draw which classes a network confuses; rows are coloured by fractions, so that rare classes are visible, too.

    Args:
        confusion: The confusion matrix.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        title: The title above it.
        theme: Colours for a light or a dark background.

    Example:
        >>> import torch
        >>> from verydeep.report import plot_confusion
        >>> from verydeep.training import Confusion
        >>> confusion = Confusion(("cat", "dog"), torch.tensor([[9, 1], [2, 8]]), loss=0.4)
        >>> figure = plot_confusion(confusion, "confusion.png", title="pets")
    """
    classes = len(confusion.classes)
    shares = (confusion.counts / confusion.counts.sum(1, keepdim=True).clamp(min=1)).numpy()
    side = min(max(0.45 * classes, 3.5), 14.0)
    # cividis is perceptually uniform and suits every kind of colour blindness; the power makes rare mistakes visible
    scale = PowerNorm(0.4, 0, 1)
    with themed_figure(path, side + 2.2, side + 1, theme) as (figure, _):
        axes = figure.add_subplot()
        image = axes.imshow(shares, cmap="cividis", norm=scale, interpolation="none")
        _name_classes(axes, confusion.classes, side)
        if classes <= _MOST_WITH_COUNTS:
            _write_counts(axes, confusion, scale(shares).tolist(), 72 * side / classes)
        axes.set(xlabel="predicted class", ylabel="true class")
        axes.set_title(title, parse_math=False)
        ticks, percent = FixedLocator([0, 0.01, 0.05, 0.2, 0.5, 1]), PercentFormatter(1, decimals=0)
        figure.colorbar(image, label="fraction of the true class", shrink=0.8, aspect=25, ticks=ticks, format=percent)
    return figure


def _name_classes(axes: Axes, classes: tuple[str, ...], side: float) -> None:
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if len(classes) > _MOST_WITH_NAMES:
        axes.set(xticks=[], yticks=[])
        return
    size = min(10.0, 60 * side / len(classes))
    turned = 90 if max(map(len, classes)) > _SHORT_NAME or len(classes) > _MOST_WITH_COUNTS else 0
    axes.set_xticks(range(len(classes)), classes, fontsize=size, rotation=turned, parse_math=False)
    axes.set_yticks(range(len(classes)), classes, fontsize=size, parse_math=False)


def _write_counts(axes: Axes, confusion: Confusion, shades: list[list[float]], cell: float) -> None:
    """Write the counts as large as the widest fits into a cell of `cell` points; zeros are left out."""
    digits = len(str(int(confusion.counts.max())))
    size = min(10.0, cell * 1.4 / max(digits, 2))
    for row, counts in enumerate(confusion.counts.tolist()):
        for column, count in enumerate(counts):
            if count:
                colour = "black" if shades[row][column] > 0.5 else "white"
                axes.text(column, row, str(count), ha="center", va="center", fontsize=size, color=colour)
