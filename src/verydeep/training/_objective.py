"""What a run minimises and measures: the objective and the metrics that its configuration asks for."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from verydeep.data import Dataset, Task
from verydeep.errors import UserError, list_names
from verydeep.objectives import Classification, Metric, MultiLabel, Objective, Regression, find_metric
from verydeep.training._config import TrainConfig
from verydeep.training.run._metrics import Selection
from verydeep.training.run._run import Run
from verydeep.training.run._run_data import RunData


@dataclass(frozen=True)
class OwnMetrics:
    """What the user gave to `train`.

    Attributes:
        objective: The objective, in place of that of the task.
        metrics: Metrics to compute after every epoch.
    """

    objective: Objective | None = None
    metrics: tuple[Metric, ...] = ()


def make_objective(config: TrainConfig, dataset: Dataset) -> Objective:
    """The objective of a configuration for the task of its data."""
    task = dataset.task
    needs_classes = config.loss in ("cross-entropy", "squared-hinge")
    needed = {"loss": "classification" if needs_classes else "regression", "label_smoothing": "classification"}
    for name, kind in needed.items():
        if getattr(config, name) and task.kind != kind:
            raise UserError(f"{name} is for {kind}, but this is a {task.kind} task; leave it out")
    if config.class_weight and task.kind == "regression":
        raise UserError("class_weight is for classes and labels, but this is a regression task; leave it out")
    weight = _class_weight(config.class_weight, dataset) if config.class_weight else None
    match config.loss:
        case "squared" | "huber" | "absolute":
            return Regression(task.outputs, config.loss)
        case "cross-entropy" | "squared-hinge":
            return Classification(config.label_smoothing, weight, config.loss)
    if task.kind == "regression":
        return Regression(task.outputs)
    return Classification(config.label_smoothing, weight) if task.kind == "classification" else MultiLabel(weight)


def run_objective(run: Run) -> Objective | None:
    """What a run measures; None if that follows from the task of its data."""
    task, loss = RunData.load(run).task, run.config.loss
    match loss:
        case "squared" | "huber" | "absolute" if task is not None:
            return Regression(task.outputs, loss)
        case "squared-hinge":
            return Classification(loss=loss)
    return None


def metrics_to_compute(
    config: TrainConfig, objective: Objective, task: Task, own: Sequence[Metric] = ()
) -> tuple[Metric, ...]:
    """The metrics beside loss and score: the user's, and the one that selects the best epoch."""
    names = {metric.name for metric in own}
    if len(names) < len(own):
        raise UserError("two of the metrics have the same name; rename one of them")
    if config.metric in (None, "loss", objective.measure, *names):
        return tuple(own)
    return (*own, find_metric(config.metric, task))


def select_by(config: TrainConfig, metrics: Sequence[Metric]) -> Selection:
    """By which metric the best epoch is selected."""
    name = config.metric or "accuracy"
    higher = next((metric.higher_is_better for metric in metrics if metric.name == name), name != "loss")
    return Selection(name, higher)


def _class_weight(given: tuple[str, ...], dataset: Dataset) -> Tensor:
    """The weight of each class, or of the ones of each label."""
    task, y = dataset.task, dataset.train.y
    if given == ("balanced",):
        if task.kind == "multilabel":
            ones = y.sum(0).clamp(min=1)
            return (len(y) - ones).clamp(min=1) / ones
        counts = y.bincount(minlength=task.outputs).clamp(min=1)
        return (len(y) / (task.outputs * counts.double())).float()
    weights = dict(_weight(text, task) for text in given)
    missing = [name for name in task.names if name not in weights]
    if missing:
        raise UserError(f"class_weight has no weight for {list_names(missing)}; give one for each, or 'balanced'")
    return torch.tensor([weights[name] for name in task.names])


def _weight(text: str, task: Task) -> tuple[str, float]:
    name, equals, number = text.rpartition("=")
    try:
        weight = float(number)
    except ValueError:
        weight = -1.0
    if not equals or not 0 < weight < float("inf"):
        raise UserError(f"class_weight: {text!r} is neither 'balanced' nor a class and its weight, such as spam=3")
    if name not in task.names:
        raise UserError(f"class_weight: {name!r} is not one of {list_names(task.names)}")
    return name, weight
