"""The learning curves of one run: loss and accuracy, or R2, on every split that was measured."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from verydeep.errors import UserError
from verydeep.report.figures._axes import add_legend, style_axes
from verydeep.report.figures._lesions import LOWEST_R2
from verydeep.report.figures._theme import FigurePath, Palette, Theme, ThemedFigure, themed_figure
from verydeep.training import EpochMetrics, Run
from verydeep.words import MEASURES

_SPLITS = {"train_": "training set", "": "training batches", "valid_": "validation set", "test_": "test set"}


def plot_run(run: Run, path: FigurePath = None, *, theme: Theme = "light") -> ThemedFigure:
    """Draw the learning curves of a run: loss on the left, accuracy (or R2) on the right.

    Args:
        run: The run, finished or not.
        path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
        theme: Colours for a light or a dark background.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.report import plot_run
        >>> from verydeep.training import ModelConfig, TrainConfig, train
        >>> run = train(TrainConfig(DataConfig("digits"), ModelConfig(depth=2, width=8), epochs=2), "runs/digits")
        >>> figure = plot_run(run, "curves.png")
    """
    metrics = run.metrics
    if not metrics:
        raise UserError(f"{run.path}: no epoch is complete yet, so there are no curves to draw")
    # Measured after the epoch, the training set says more than its batches, whose weights change from one to the next.
    hidden = "" if any(line.train_loss is not None for line in metrics) else "train_"
    with themed_figure(path, 9, 3.4, theme) as (figure, palette):
        left, right = figure.subplots(1, 2)
        _draw(left, metrics, "loss", hidden, palette)
        _draw(right, metrics, run.measure, hidden, palette)
        left.set(ylabel="mean loss", yscale="log")
        right.set_ylabel(MEASURES.get(run.measure, run.measure))
        if run.measure == "accuracy":
            right.yaxis.set_major_formatter(PercentFormatter(1))
        else:
            keep_readable(right)
    return figure


def _draw(axes: Axes, metrics: list[EpochMetrics], name: str, hidden: str, palette: Palette) -> None:
    for (split, label), colour in zip(_SPLITS.items(), (0, 0, 1, 2), strict=True):
        values = [(line.epoch, line.get(split + name)) for line in metrics]
        points = [(epoch, value) for epoch, value in values if value is not None and math.isfinite(value)]
        if split != hidden and points:
            marker = "o" if len(points) == 1 else ""
            axes.plot(*zip(*points, strict=True), label=label, color=palette.colours[colour], marker=marker)
    axes.set_xlabel("epoch")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    style_axes(axes)
    if axes.lines:
        add_legend(axes)


def keep_readable(axes: Axes) -> None:
    """Cut an axis of R2 off at -1 if the first epochs were worse, so that the others can be told apart."""
    values = np.concatenate([[0.0], *(np.asarray(line.get_ydata(), float) for line in axes.lines)])
    if values.min() < LOWEST_R2:
        axes.set_ylim(bottom=LOWEST_R2)
