"""The confusion matrix as a picture."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, PercentFormatter

from verydeep.report.figures._theme import Theme, saved_figure
from verydeep.training import Confusion

_NUMBERED = 25  # with more classes, counts in cells could not be read
_NAMED = 150  # with more, names could not be read either
_LONG = 3  # letters of a name that fit under a column


def plot_confusion(confusion: Confusion, path: Path, title: str = "", theme: Theme = "light") -> Figure:
    """Draw which classes a network takes for which; every row is coloured by its shares, so rare classes count too.

    Args:
        confusion: What to draw.
        path: The picture, by its suffix PNG, SVG or PDF.
        title: What stands above it.
        theme: On white or on black.
    """
    classes = len(confusion.classes)
    shares = (confusion.counts / confusion.counts.sum(1, keepdim=True).clamp(min=1)).numpy()
    side = min(max(0.45 * classes, 3.5), 14.0)
    # cividis is perceptually uniform and looks alike with every kind of colour blindness; the power shows few mistakes
    scale = PowerNorm(0.4, 0, 1)
    with saved_figure(path, side + 2, side + 1, theme) as (figure, _):
        axes = figure.add_subplot()
        image = axes.imshow(shares, cmap="cividis", norm=scale, interpolation="none")
        _name_classes(axes, confusion.classes, side)
        if classes <= _NUMBERED:
            _write_counts(axes, confusion, scale(shares).tolist(), 72 * side / classes)
        axes.set(xlabel="answer", ylabel="class")
        axes.set_title(title, parse_math=False)
        ticks, percent = FixedLocator([0, 0.01, 0.05, 0.2, 0.5, 1]), PercentFormatter(1, decimals=0)
        figure.colorbar(image, label="share of the class", shrink=0.8, aspect=25, ticks=ticks, format=percent)
    return figure


def _name_classes(axes: Axes, classes: tuple[str, ...], side: float) -> None:
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if len(classes) > _NAMED:
        axes.set(xticks=[], yticks=[])
        return
    size = min(10.0, 60 * side / len(classes))
    turned = 90 if max(map(len, classes)) > _LONG or len(classes) > _NUMBERED else 0
    axes.set_xticks(range(len(classes)), classes, fontsize=size, rotation=turned, parse_math=False)
    axes.set_yticks(range(len(classes)), classes, fontsize=size, parse_math=False)


def _write_counts(axes: Axes, confusion: Confusion, shades: list[list[float]], cell: float) -> None:
    """Counts, as large as the widest fits into a cell of so many points; empty cells stay empty."""
    digits = len(str(int(confusion.counts.max())))
    size = min(10.0, cell * 1.4 / max(digits, 2))
    for row, counts in enumerate(confusion.counts.tolist()):
        for column, count in enumerate(counts):
            if count:
                colour = "black" if shades[row][column] > 0.5 else "white"
                axes.text(column, row, str(count), ha="center", va="center", fontsize=size, color=colour)
