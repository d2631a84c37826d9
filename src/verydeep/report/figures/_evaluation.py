"""How good predictions are: residuals of a regression, metrics of each label, and calibration of probabilities."""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.ticker import PercentFormatter

from verydeep.errors import UserError
from verydeep.report.figures._axes import Array, add_legend, style_axes
from verydeep.report.figures._confusion import plot_confusion
from verydeep.report.figures._theme import FigurePath, Palette, Theme, ThemedFigure, themed_figure
from verydeep.training import Evaluation
from verydeep.words import METRIC_NAMES

_MOST_POINTS = 3000  # samples that are drawn; more would only blacken the cloud
_MOST_TARGETS = 6  # rows of residuals that fit
_MOST_LABELS = 60
_LABEL_METRICS = ("f1", "roc_auc", "average_precision")


def plot_evaluation(
    evaluation: Evaluation, path: FigurePath = None, *, title: str = "", theme: Theme = "light"
) -> ThemedFigure:
    """Draw the main figure of an evaluation: the confusion matrix, the metrics of each label, or the residuals.

    Args:
        evaluation: The result of `evaluate_metrics`.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        title: The title above it.
        theme: Colours for a light or a dark background.

    Example:
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> from verydeep.report import plot_evaluation
        >>> from verydeep.training import evaluate_metrics
        >>> digits = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=3, width=8, classes=10, input_shape=(1, 8, 8))
        >>> figure = plot_evaluation(evaluate_metrics(model, digits.test))
    """
    if evaluation.confusion is not None:
        return plot_confusion(evaluation.confusion, path, title=title, theme=theme)
    draw = _plot_residuals if evaluation.task.kind == "regression" else _plot_labels
    return draw(evaluation, path, title, theme)


def main_figure_name(evaluation: Evaluation) -> str:
    """What the main figure shows, as the name of its file."""
    return {"classification": "confusion", "multilabel": "labels"}.get(evaluation.task.kind, "residuals")


def plot_calibration(
    evaluation: Evaluation, path: FigurePath = None, *, title: str = "", theme: Theme = "light"
) -> ThemedFigure:
    """Draw how often what is predicted with some probability happens, and how many predictions there are of each.

    Args:
        evaluation: The result of `evaluate_metrics`, of classes or labels.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        title: The title above it.
        theme: Colours for a light or a dark background.

    Example:
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> from verydeep.report import plot_calibration
        >>> from verydeep.training import evaluate_metrics
        >>> digits = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=3, width=8, classes=10, input_shape=(1, 8, 8))
        >>> figure = plot_calibration(evaluate_metrics(model, digits.test))
    """
    found = evaluation.calibration
    if found is None:
        raise UserError("there are no probabilities to calibrate")
    with themed_figure(path, 5, 5.4, theme) as (figure, palette):
        axes, below = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
        axes.plot([0, 1], [0, 1], color=palette.faint, linestyle="--", label="perfectly calibrated")
        error = evaluation.metrics["calibration_error"].value
        colour = palette.colours[0]
        axes.vlines(found.predicted, found.low, found.high, color=colour, alpha=0.5, linewidth=2, label="95 % interval")
        axes.plot(found.predicted, found.observed, color=colour, linewidth=1, alpha=0.6)
        axes.plot(found.predicted, found.observed, "o", color=colour, label="this network")
        axes.set(ylabel="how often it happened", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        axes.set_title(title or f"expected calibration error {error:.4f}", parse_math=False)
        edges = np.linspace(0, 1, 11)
        place = np.searchsorted(edges[1:-1], found.predicted)
        below.bar((edges[place] + edges[place + 1]) / 2, found.counts, width=0.09, color=colour)
        below.set(ylabel="predictions", yscale="log", ylim=(0.7, 2 * int(found.counts.max())))
        below.set_xlabel(f"predicted probability of {found.of}", parse_math=False)
        for each in (axes, below):
            style_axes(each)
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        below.xaxis.set_major_formatter(PercentFormatter(1))
        figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize="small")
    return figure


def _plot_residuals(evaluation: Evaluation, path: FigurePath, title: str, theme: Theme) -> ThemedFigure:
    """Predicted against true numbers, and the differences, of each target."""
    assert evaluation.targets is not None
    assert evaluation.predictions is not None
    names = evaluation.task.names[:_MOST_TARGETS]
    kept = np.random.default_rng(0).permutation(evaluation.samples)[:_MOST_POINTS]
    with themed_figure(path, 9.5, 0.4 + 4 * len(names), theme) as (figure, palette):
        figure.suptitle(title, parse_math=False, fontsize="medium")
        for part, name, column in zip(_rows(figure, len(names)), names, range(len(names)), strict=True):
            left, right = part.subplots(1, 2)
            true, predicted = evaluation.targets[kept, column], evaluation.predictions[kept, column]
            _draw_predictions(left, true, predicted, name, palette)
            _draw_differences(right, predicted, true - predicted, name, palette)
    return figure


def _rows(figure: ThemedFigure, count: int) -> list[SubFigure]:
    return list(figure.subfigures(count, 1, squeeze=False)[:, 0])


def _draw_predictions(axes: Axes, true: Array, predicted: Array, name: str, palette: Palette) -> None:
    ends = [float(min(true.min(), predicted.min())), float(max(true.max(), predicted.max()))]
    axes.plot(ends, ends, color=palette.colours[1], linestyle="--", linewidth=1.5, label="predicted = true")
    axes.plot(predicted, true, **_cloud(len(true), palette))
    axes.set_xlabel(f"predicted {name}", parse_math=False)
    axes.set_ylabel(f"true {name}", parse_math=False)
    style_axes(axes)
    add_legend(axes)


def _draw_differences(axes: Axes, predicted: Array, difference: Array, name: str, palette: Palette) -> None:
    axes.axhline(0, color=palette.colours[1], linestyle="--", linewidth=1.5)
    axes.plot(predicted, difference, **_cloud(len(predicted), palette))
    axes.set_xlabel(f"predicted {name}", parse_math=False)
    axes.set_ylabel("residual: true − predicted", parse_math=False)
    style_axes(axes)


def _cloud(samples: int, palette: Palette) -> dict[str, Any]:
    size, alpha = (4.0, 0.6) if samples <= 500 else (2.5, 0.35)
    return {"linestyle": "", "marker": "o", "color": palette.colours[0], "markersize": size, "alpha": alpha,
            "markeredgewidth": 0, "rasterized": samples > 1000}  # fmt: skip


def _plot_labels(evaluation: Evaluation, path: FigurePath, title: str, theme: Theme) -> ThemedFigure:
    """F1, ROC-AUC and average precision of each label, with their intervals."""
    names = list(evaluation.each)[:_MOST_LABELS]
    with themed_figure(path, 9.5, 1.4 + 0.32 * max(len(names), 3), theme) as (figure, palette):
        figure.suptitle(title, parse_math=False, fontsize="medium")
        panels = figure.subplots(1, len(_LABEL_METRICS), sharey=True)
        for axes, metric in zip(panels, _LABEL_METRICS, strict=True):
            for place, name in enumerate(names):
                found = evaluation.each[name][metric]
                if not math.isnan(found.value):
                    axes.plot([found.low, found.high], [place, place], color=palette.colours[0], linewidth=2, alpha=0.5)
                    axes.plot([found.value], [place], "o", color=palette.colours[0], markersize=6)
            if metric == "average_precision":
                guesses = [evaluation.each[name]["frequency"].value for name in names]
                axes.plot(guesses, range(len(names)), "|", color=palette.colours[1], markersize=12, markeredgewidth=2)
            if metric == "roc_auc":
                axes.axvline(0.5, color=palette.colours[1], linewidth=1.2)
            axes.set(xlabel=METRIC_NAMES[metric], xlim=(0, 1.03), ylim=(len(names) - 0.5, -0.5))
            style_axes(axes)
        panels[0].set_yticks(range(len(names)), names, parse_math=False)
        figure.supxlabel("orange: a blind guess; bars: 95 % bootstrap intervals", fontsize="small")
    return figure
