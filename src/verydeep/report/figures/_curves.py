"""Training curves, one per run."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from verydeep.errors import UserError, unknown
from verydeep.report.figures._axes import add_legend, metric_name, style_axes
from verydeep.report.figures._theme import FigurePath, Theme, ThemedFigure, themed_figure
from verydeep.training import EpochMetrics, Run

_LABELS = {
    "lr": "learning rate",
    "loss": "mean cross-entropy during the epoch",
    "accuracy": "accuracy during the epoch",
    "train_loss": "mean cross-entropy, training set",
    "valid_loss": "mean cross-entropy, validation set",
    "test_loss": "mean cross-entropy, test set",
    "train_accuracy": "accuracy, training set",
    "valid_accuracy": "accuracy, validation set",
    "test_accuracy": "accuracy, test set",
    "seconds": "seconds",
}
_STYLES = ("-", "--", ":", "-.")


def plot_curves(
    curves: Run | Sequence[Run] | Mapping[str, Sequence[EpochMetrics]],
    path: FigurePath = None,
    *,
    metric: str | None = None,
    log: bool = True,
    theme: Theme = "light",
) -> ThemedFigure:
    """Draw one metric of several runs over epochs.

    Args:
        curves: A run, several runs, or the metrics of each run (`Run.metrics`) by its name in the legend.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        metric: The metric to draw; by default the loss on the training set if it was measured, else that during epochs.
        log: Whether its axis is logarithmic.
        theme: Colours for a light or a dark background.

    Example:
        >>> from verydeep.report import plot_curves
        >>> from verydeep.training import EpochMetrics
        >>> metrics = [EpochMetrics(epoch=epoch, train_loss=1 / epoch) for epoch in (1, 2, 3)]  # or run.metrics
        >>> figure = plot_curves({"mine": metrics}, "curves.png")
    """
    named = _by_name(curves)
    if metric is None:
        measured = any(line.train_loss is not None for metrics in named.values() for line in metrics)
        metric = "train_loss" if measured else "loss"
    points = {name: _points(name, metrics, metric) for name, metrics in named.items()}
    with themed_figure(path, 7, 4.5, theme) as (figure, palette):
        axes = figure.add_subplot()
        for number, (name, found) in enumerate(points.items()):
            style = _STYLES[number // len(palette.colours) % len(_STYLES)]
            marker = "o" if len(found) == 1 else ""
            line = axes.plot(*zip(*found, strict=True), style, color=palette.colours[number % len(palette.colours)])
            line[0].set(label=name, linewidth=1.8, marker=marker)
        regression = any(line.get("r2") is not None for metrics in named.values() for line in metrics)
        _label_axes(axes, metric, log, regression)
    return figure


def _by_name(
    curves: Run | Sequence[Run] | Mapping[str, Sequence[EpochMetrics]],
) -> Mapping[str, Sequence[EpochMetrics]]:
    """The metrics of runs by the names of their folders, or by their paths if two names are the same."""
    if isinstance(curves, Mapping):
        return curves
    runs = [curves] if isinstance(curves, Run) else curves
    names = [run.path.name for run in runs]
    return {run.path.name if names.count(run.path.name) == 1 else str(run.path): run.metrics for run in runs}


def _label(metric: str, regression: bool) -> str:
    split, _, name = metric.rpartition("_")
    if name == "r2":
        where = {"": "during the epoch", "train": "training set", "valid": "validation set", "test": "test set"}
        return f"R², {where[split]}" if split in where else metric_name(metric)
    text = _LABELS.get(metric, metric_name(metric))
    return text.replace("mean cross-entropy", "mean loss") if regression else text


def _label_axes(axes: Axes, metric: str, log: bool, regression: bool) -> None:
    axes.set(xlabel="epoch", ylabel=_label(metric, regression))
    if log:
        axes.set_yscale("log")
    elif metric.endswith("accuracy"):
        axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    style_axes(axes)
    add_legend(axes)


def _points(name: str, metrics: Sequence[EpochMetrics], metric: str) -> list[tuple[int, float]]:
    """List epochs and values; a diverged epoch has no value and is left out."""
    known = {key for line in metrics for key in line.to_dict()} - {"epoch"}
    if not known:
        raise UserError(f"{name}: no epoch is complete yet, so there is no curve to draw")
    if metric not in known | set(_LABELS):  # a network that diverged at once has no train_loss
        raise unknown(f"metric of {name}", metric, known)
    points = [(line.epoch, line.to_dict().get(metric)) for line in metrics]
    found = [(epoch, value) for epoch, value in points if value is not None]
    return found or [(metrics[0].epoch, math.nan)]
