"""The metrics by which people decide whether a network is good enough, with intervals."""

import math
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from verydeep import objectives
from verydeep.cpu import cpu_settings
from verydeep.data import Split, Task
from verydeep.errors import UserError
from verydeep.notebook import html_card
from verydeep.objectives import Objective, find_metric, objective_for
from verydeep.training.evaluation import _bootstrap as bootstrap
from verydeep.training.evaluation._evaluate import Confusion, _batches
from verydeep.training.run._display import draw
from verydeep.words import METRIC_NAMES, metric_value, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
_LEAST_AUC = 0.55  # a network whose ROC-AUC is certainly above has learned something, whatever its threshold


@dataclass(frozen=True)
class Estimate:
    """A metric of some samples, and the interval in which it would be for others like them.

    Attributes:
        value: The metric; NaN if it is not defined, such as ROC-AUC of a single class.
        low: The lower end of its 95 % bootstrap interval; NaN if it was not computed.
        high: The upper end.

    Example:
        >>> from verydeep.training import Estimate
        >>> Estimate(0.9, 0.85, 0.94).high
        0.94
    """

    value: float
    low: float = math.nan
    high: float = math.nan

    def to_dict(self) -> dict[str, float | None]:
        """Plain values, for JSON."""
        return {name: value if math.isfinite(value) else None for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Calibration:
    """How often what a network predicts with some probability happens, in ten ranges of that probability.

    Attributes:
        predicted: The mean predicted probability in each range that has samples, `(range,)`.
        observed: How often it happened, `(range,)`.
        low: The lower end of the 95 % interval of `observed` (Wilson's, which suits few predictions), `(range,)`.
        high: The upper end, `(range,)`.
        counts: The number of predictions, `(range,)`.
        of: What the probability is of.

    Example:
        >>> import numpy as np
        >>> from verydeep.training import Calibration
        >>> two = np.array([0.1, 0.9])
        >>> Calibration(two, two, two - 0.05, two + 0.05, np.array([90, 10]), "spam").of
        'spam'
    """

    predicted: Array
    observed: Array
    low: Array
    high: Array
    counts: NDArray[np.int64]
    of: str


@dataclass(frozen=True, repr=False)
class Evaluation:
    """How good a network's predictions on some samples are; `evaluate_metrics` computes it.

    Attributes:
        task: What is predicted.
        samples: The number of samples.
        loss: The mean loss.
        guess_loss: The mean loss of a blind guess: the frequency of each class or label, or the mean of the target.
        metrics: By name. Of classes: `accuracy`, `balanced_accuracy`, `f1`, `roc_auc`, `average_precision`, `log_loss`
            and `calibration_error`; of labels the same on average, and `exact_match` instead of `balanced_accuracy`; of
            numbers: `rmse` and `mae`, in their original units, and `r2`. With two classes, `f1`, `roc_auc` and
            `average_precision` are those of the second class; with more, means over classes.
        skill: By which fraction the loss is below that of a blind guess, for squared error if the task is regression.
        each: The metrics of each label or target; empty for classes.
        confusion: Which classes are confused; None for other tasks.
        calibration: How far probabilities can be trusted; None for a regression.
        targets: The true numbers of a regression in their original units, `(sample, target)`; None for other tasks.
        predictions: The predicted ones.

    Example:
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> from verydeep.training import evaluate_metrics
        >>> digits = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=3, width=8, classes=10, input_shape=(1, 8, 8))
        >>> evaluation = evaluate_metrics(model, digits.test)
        >>> evaluation
        <Evaluation: 359 samples, accuracy ...% (... to ...), log loss ...>
        >>> auc = evaluation.metrics["roc_auc"]
        >>> auc.low < auc.value < auc.high
        True
    """

    task: Task
    samples: int
    loss: float
    guess_loss: float
    metrics: Mapping[str, Estimate]
    skill: Estimate
    each: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    confusion: Confusion | None = None
    calibration: Calibration | None = None
    targets: Array | None = None
    predictions: Array | None = None

    def __repr__(self) -> str:
        first, second = ("r2", "rmse") if self.task.kind == "regression" else ("accuracy", "log_loss")
        main, other = (f"{METRIC_NAMES[name]} {self.text(name, short=name == second)}" for name in (first, second))
        return f"<Evaluation: {plural(self.samples, 'sample')}, {main}, {other}>"

    def _repr_html_(self) -> str:
        rows = [("samples", f"{self.samples:,}"), *((METRIC_NAMES[name], self.text(name)) for name in self.metrics)]
        notes = [("", sentence) for sentence in (*self.remarks(), "Ranges are 95% bootstrap intervals.")]
        return html_card("Evaluation", [*rows, *notes], [self.plot()._repr_png_()])  # type: ignore[attr-defined]

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> "Figure":  # noqa: ANN401
        """Draw the confusion matrix, the metrics of each label, or the residuals. A notebook shows the figure.

        Args:
            path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
            **options: Options of `verydeep.report.plot_evaluation`, such as `theme="dark"`.
        """
        return draw("plot_evaluation", self, path, **options)

    @property
    def majority(self) -> tuple[str, float] | None:
        """The most frequent class and its share of the samples; None for other tasks."""
        if self.confusion is None:
            return None
        counts = self.confusion.counts.sum(1)
        return self.confusion.classes[int(counts.argmax())], int(counts.max()) / self.samples

    @property
    def positive(self) -> str | None:
        """The class that counts as positive if there are two: the second."""
        return self.task.names[1] if self.task.kind == "classification" and self.task.outputs == 2 else None

    @property
    def has_learned(self) -> bool:
        """Whether the network is clearly better than a blind guess: in loss, in accuracy, or in ranking samples."""
        share = 1.0 if self.majority is None else self.majority[1]
        chosen = self.metrics.get("roc_auc", Estimate(0.0))
        accuracy = self.metrics.get("accuracy", Estimate(0.0))
        # Without an interval, because there are too many samples for one to matter, the value itself decides.
        lowest = [each.value if math.isnan(each.low) else each.low for each in (self.skill, accuracy, chosen)]
        return lowest[0] > 0 or lowest[1] > share or lowest[2] > _LEAST_AUC

    def text(self, name: str, short: bool = False) -> str:
        """A metric as it is shown: 97.50% (95.31% to 98.90%); `short` leaves the interval out."""
        return estimate_text(name, self.metrics[name], short)

    def remarks(self) -> list[str]:
        """What a reader has to know to judge the metrics, in sentences."""
        found = []
        if self.majority is not None:
            name, share = self.majority
            found.append(
                f"Always predicting {name!r}, the most frequent class of these {self.samples:,} samples, would be "
                f"correct for {share:.2%}."
            )
        if self.positive is not None:
            found.append(f"F1, ROC-AUC and average precision count {self.positive!r} as positive.")
        if self.task.kind == "regression" and self.task.outputs > 1:
            found.append("RMSE, MAE and R² are means over the targets.")
        elif self.task.kind == "multilabel" or self.task.outputs > 2:
            names = "labels" if self.task.kind == "multilabel" else "classes"
            found.append(f"F1, ROC-AUC and average precision are means over the {names}.")
        guess = {"classification": "the frequency of each class", "multilabel": "the frequency of each label"}
        blind = guess.get(self.task.kind, "the mean of the target")
        found.append(f"The loss is {self.loss:.4g}; that of a blind guess, {blind}, is {self.guess_loss:.4g}.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found: dict[str, Any] = {"task": self.task.kind, "samples": self.samples}
        found |= {"loss": _finite(self.loss), "guess_loss": _finite(self.guess_loss)}
        found |= {"metrics": {name: each.to_dict() for name, each in self.metrics.items()}}
        found["skill"] = self.skill.to_dict()
        if self.confusion is not None and self.majority is not None:
            found |= self.confusion.to_dict()
            found |= {"majority_class": self.majority[0], "majority_share": self.majority[1]}
            found["positive_class"] = self.positive
        if self.each:
            key = "targets" if self.task.kind == "regression" else "labels"
            found[key] = {
                name: {metric: each.to_dict() for metric, each in metrics.items()}
                for name, metrics in self.each.items()
            }
        if self.calibration is not None:
            values = asdict(self.calibration)
            found["calibration"] = {
                name: [_finite(each) for each in value.tolist()] if isinstance(value, np.ndarray) else value
                for name, value in values.items()
            }
        return found


def estimate_text(name: str, estimate: Estimate, short: bool = False) -> str:
    """A metric and, unless `short`, its interval: 0.8712 (0.8403 to 0.9011)."""
    value = metric_value(name, estimate.value)
    if short or math.isnan(estimate.low) or math.isnan(estimate.value):
        return value
    return f"{value} ({metric_value(name, estimate.low)} to {metric_value(name, estimate.high)})"


def evaluate_metrics(
    model: nn.Module,
    split: Split,
    task: Task | None = None,
    device: torch.device | str = "cpu",
    *,
    objective: Objective | None = None,
) -> Evaluation:
    """Compute the metrics of a model's predictions on every sample of a split, in evaluation mode.

    The metrics are scikit-learn's, their intervals are those of 1,000 bootstrap samples (fewer for many samples).

    Args:
        model: The model.
        split: The samples.
        task: What is predicted; by default, the task of the split.
        device: The device to compute on; the model is moved there.
        objective: Whose loss is reported; by default, that of the task.

    Example:
        >>> import torch
        >>> from verydeep.data import Split
        >>> from verydeep.training import evaluate_metrics
        >>> x = torch.randn(100, 3)
        >>> split = Split(x, x.sum(1, keepdim=True) + 0.1 * torch.randn(100, 1))
        >>> model = torch.nn.Linear(3, 1, bias=False)
        >>> _ = torch.nn.init.ones_(model.weight)
        >>> evaluate_metrics(model, split).metrics["r2"].value > 0.9
        True
    """
    if not len(split):
        raise UserError("the data has no samples")
    if split.y.is_floating_point() and split.y.dim() == 1:
        split = replace(split, y=split.y[:, None])
    task = task or split.task
    objective = objective or objective_for(task, split.y)
    model = model.eval().to(device)
    rows: list[Tensor] = []
    with cpu_settings(), torch.inference_mode():
        totals = objectives.evaluate_batches(
            model, _batches(split), objective, device=device, observe=lambda outputs, _: rows.append(outputs.cpu())
        )
    outputs, y = torch.cat(rows).clone(), split.y.cpu()
    task = task or _unnamed(y, outputs)
    with cpu_settings():
        return _EVALUATIONS[task.kind](task, objective, outputs, y, totals.loss)


def _unnamed(y: Tensor, outputs: Tensor) -> Task:
    """The task of data that does not say its task."""
    count = outputs.shape[1]
    names = tuple(map(str, range(count)))
    if not y.is_floating_point():
        return Task("classification", names)
    return Task("regression", ("target",) if count == 1 else names, (0.0,) * count, (1.0,) * count)


def _of_classes(task: Task, objective: Objective, outputs: Tensor, y: Tensor, loss: float) -> Evaluation:
    answers, probabilities = objective.answer(outputs).numpy(), _probabilities(objective, outputs)
    probabilities /= probabilities.sum(1, keepdims=True)
    numbers, classes = y.numpy(), len(task.names)
    metrics = bootstrap.of_classes(numbers, answers, probabilities)
    columns = slice(1, 2) if classes == 2 else slice(None)
    ranked = bootstrap.of_ranking(np.eye(classes)[numbers][:, columns], probabilities[:, columns])
    ends = bootstrap.intervals(len(y), 1 if classes == 2 else classes, metrics, ranked)
    point = metrics(np.ones((1, len(y))))
    values = {name: find_metric(name, task)(outputs, y, objective, task) for name in _RANKED_AND_LOSS}
    values |= {name: find_metric(name, task)(outputs, y, objective, task) for name in ("balanced_accuracy",)}
    values |= {"accuracy": float((answers == numbers).mean()), "f1": _f1(numbers, answers, classes)}
    confidence, happened = bootstrap.confidence_of(numbers, answers, probabilities)
    calibration, values["calibration_error"] = _calibration(
        confidence, happened, task.names[1] if classes == 2 else "the predicted class"
    )
    counts = torch.from_numpy(numbers * classes + answers).bincount(minlength=classes**2).view(classes, -1)
    frequency = counts.sum(1).double() / len(y)
    guess = float((frequency * -frequency.clamp(min=1e-300).log()).sum())
    order = ("accuracy", "balanced_accuracy", "f1", *_RANKED_AND_LOSS, "calibration_error")
    return Evaluation(
        task,
        len(y),
        loss,
        guess,
        {name: _estimate(values[name], ends, name) for name in order},
        _estimate(float(point["skill"][0]), ends, "skill"),
        confusion=Confusion(task.names, counts, loss),
        calibration=calibration,
    )


_RANKED_AND_LOSS = ("roc_auc", "average_precision", "log_loss")


def _f1(y: NDArray[Any], answers: NDArray[Any], classes: int) -> float:
    from sklearn.metrics import f1_score  # type: ignore[import-untyped]

    average = "binary" if classes == 2 else "macro"
    return float(f1_score(y, answers, average=average, zero_division=0.0))


def _of_labels(task: Task, objective: Objective, outputs: Tensor, y: Tensor, loss: float) -> Evaluation:
    from sklearn.metrics import accuracy_score, average_precision_score, log_loss, roc_auc_score

    answers, probabilities = objective.answer(outputs).double().numpy(), _probabilities(objective, outputs)
    truth = y.double().numpy()
    metrics, ranked = bootstrap.of_labels(truth, answers, probabilities), bootstrap.of_ranking(truth, probabilities)
    finite = bool(np.isfinite(probabilities).all())
    ends = bootstrap.intervals(len(y), truth.shape[1], metrics, ranked) if finite else {}
    point = metrics(np.ones((1, len(y))))
    values = {"accuracy": float((answers == truth).mean()), "exact_match": float(accuracy_score(truth, answers))}
    each: dict[str, dict[str, Estimate]] = {}
    for number, name in enumerate(task.names):
        true, answered, chance = truth[:, number], answers[:, number], probabilities[:, number]
        found = {
            "frequency": float(true.mean()),
            "accuracy": float((answered == true).mean()),
            "f1": _f1(true, answered, 2),
            "roc_auc": _of_chances(roc_auc_score, true, chance) if 0 < true.mean() < 1 else math.nan,
            "average_precision": _of_chances(average_precision_score, true, chance),
            "log_loss": _of_chances(partial(log_loss, labels=[0, 1]), true, chance),
        }
        each[name] = {metric: _estimate(found[metric], ends, f"{metric} of each", number) for metric in _OF_EACH_LABEL}
    for metric in ("f1", *_RANKED_AND_LOSS):
        known = [label[metric].value for label in each.values() if not math.isnan(label[metric].value)]
        values[metric] = float(np.mean(known)) if known else math.nan
    calibration, values["calibration_error"] = _calibration(probabilities.ravel(), truth.ravel(), "each label")
    frequency = y.double().mean(0)
    entropy = torch.zeros_like(frequency)
    for share in (frequency, 1 - frequency):
        entropy -= share * share.clamp(min=1e-300).log()
    order = ("accuracy", "exact_match", "f1", *_RANKED_AND_LOSS, "calibration_error")
    return Evaluation(
        task,
        len(y),
        loss,
        abs(float(entropy.mean())),
        {name: _estimate(values[name], ends, name) for name in order},
        _estimate(float(point["skill"][0]), ends, "skill"),
        each,
        calibration=calibration,
    )


_OF_EACH_LABEL = ("frequency", "accuracy", "f1", "roc_auc", "average_precision", "log_loss")


def _of_chances(function: Callable[..., float], true: Array, chance: Array) -> float:
    """A metric of the probability of one label; NaN if the network does not give probabilities."""
    if not np.isfinite(chance).all():
        return math.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # average precision of a label that no sample has
        return float(function(true, chance))


def _of_numbers(task: Task, objective: Objective, outputs: Tensor, y: Tensor, loss: float) -> Evaluation:
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    truth, predictions = task.restore(y).numpy(), task.restore(objective.answer(outputs)).numpy()
    functions = {"rmse": root_mean_squared_error, "mae": mean_absolute_error, "r2": r2_score}
    finite = bool(np.isfinite(predictions).all())
    ends = bootstrap.intervals(len(y), truth.shape[1], bootstrap.of_numbers(truth, predictions)) if finite else {}

    def measure(metric: str, columns: slice) -> float:
        enough = finite and (metric != "r2" or len(y) > 1)
        return float(functions[metric](truth[:, columns], predictions[:, columns])) if enough else math.nan

    each = {
        name: {
            metric: _estimate(measure(metric, slice(number, number + 1)), ends, f"{metric} of each", number)
            for metric in functions
        }
        for number, name in enumerate(task.names)
    }
    values = {metric: _estimate(measure(metric, slice(None)), ends, metric) for metric in functions}
    guess = float(objective.loss(y.mean(0, keepdim=True).expand_as(y), y)) / len(y)
    several = each if len(task.names) > 1 else {}
    return Evaluation(task, len(y), loss, guess, values, values["r2"], several, targets=truth, predictions=predictions)


_EVALUATIONS = {"classification": _of_classes, "multilabel": _of_labels, "regression": _of_numbers}


def _probabilities(objective: Objective, outputs: Tensor) -> Array:
    found = objective.probabilities(outputs)
    if found is None:
        raise UserError(f"{type(objective).__name__} has no probabilities, so there are no metrics of them")
    array: Array = found.double().numpy()
    return array


def _calibration(probabilities: Array, happened: Array, of: str) -> tuple[Calibration | None, float]:
    """The calibration curve of scikit-learn, and the expected calibration error."""
    from sklearn.calibration import calibration_curve  # type: ignore[import-untyped]

    if not np.isfinite(probabilities).all():
        return None, math.nan
    probabilities = probabilities.clip(0, 1)
    observed, predicted = calibration_curve(happened, probabilities, n_bins=bootstrap.BINS)
    counts = np.bincount(bootstrap.bin_of(probabilities), minlength=bootstrap.BINS)
    counts = counts[counts > 0]
    error = float((counts * np.abs(observed - predicted)).sum() / counts.sum())
    squared = 1.96**2  # of the normal distribution's quantile
    middle = (observed + squared / counts / 2) / (1 + squared / counts)
    half = np.sqrt(squared * (observed * (1 - observed) / counts + squared / counts**2 / 4)) / (1 + squared / counts)
    return Calibration(predicted, observed, middle - half, middle + half, counts, of), error


def _estimate(value: float, ends: Mapping[str, tuple[Array, Array]], name: str, column: int | None = None) -> Estimate:
    if name not in ends or math.isnan(value):
        return Estimate(value)
    low, high = (float(end if column is None else end[column]) for end in ends[name])
    return Estimate(value, low, high)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
