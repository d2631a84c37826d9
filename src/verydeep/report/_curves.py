"""Curves of training, one for every run, as in the paper's Figure 1."""

from pathlib import Path
from typing import Any

from matplotlib.ticker import MaxNLocator, PercentFormatter

from verydeep.errors import UserError, unknown
from verydeep.report._figure import COLOURS, new_figure, save_figure

_LABELS = {
    "lr": "learning rate",
    "loss": "mean cross-entropy while training",
    "accuracy": "accuracy while training",
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
    curves: dict[str, list[dict[str, Any]]], path: Path, metric: str = "train_loss", log: bool = True
) -> None:
    """Draw one metric of several runs over epochs.

    Args:
        curves: The name of each run, and its metrics (`Run.metrics`).
        path: The picture, by its suffix PNG, SVG or PDF.
        metric: What to draw.
        log: Whether its axis is logarithmic.
    """
    figure = new_figure(7, 4.5)
    axes = figure.add_subplot()
    for number, (name, metrics) in enumerate(curves.items()):
        points = _points(name, metrics, metric)
        style = _STYLES[number // len(COLOURS) % len(_STYLES)]
        marker = "o" if len(points) == 1 else None
        line = axes.plot(*zip(*points, strict=True), style, color=COLOURS[number % len(COLOURS)], marker=marker)
        line[0].set(label=name, linewidth=1.8)
    axes.set(xlabel="epoch", ylabel=_LABELS.get(metric, metric.replace("_", " ")))
    if log:
        axes.set_yscale("log")
    elif metric.endswith("accuracy"):
        axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    for text in axes.legend(frameon=False).get_texts():
        text.set_parse_math(False)
    save_figure(figure, path)


def _points(name: str, metrics: list[dict[str, Any]], metric: str) -> list[tuple[int, float]]:
    """Epoch and value, where there is one; a diverged epoch has none."""
    known = {key for line in metrics for key in line} - {"epoch"}
    if metric not in known:
        if not known:
            raise UserError(f"{name}: no epoch is complete yet, so there is nothing to draw")
        raise unknown(f"metric of {name}", metric, known)
    points = [(line["epoch"], line[metric]) for line in metrics if line.get(metric) is not None]
    return points or [(metrics[0]["epoch"], float("nan"))]
