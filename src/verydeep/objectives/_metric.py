"""Metrics that are computed from all predictions on a split at once, most of them by scikit-learn."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from torch import Tensor

from verydeep.data import Task
from verydeep.errors import UserError, unknown
from verydeep.objectives._objective import Objective
from verydeep.words import LOWER_IS_BETTER

Function = Callable[[Any, Any], float]


@dataclass(frozen=True)
class Metric:
    """A figure computed from the targets and the predictions on a whole split, after every epoch.

    Attributes:
        name: Its name; in metrics.jsonl it is `valid_NAME` and `test_NAME`.
        function: Takes the targets and the predictions as NumPy arrays, both in the form that scikit-learn's metrics
            take: class numbers `(n,)`, numbers `(n,)` or `(n, targets)` in their original units, or labels
            `(n, labels)`.
        higher_is_better: Whether training selects the highest value, if it selects by this metric.
        of: Whether the predictions are `answers` or `probabilities`, `(n, classes)`.

    Example:
        >>> from sklearn.metrics import matthews_corrcoef
        >>> from verydeep.objectives import Metric
        >>> metric = Metric("mcc", matthews_corrcoef)
        >>> metric.function([0, 1, 1, 0], [0, 1, 1, 0])
        1.0
    """

    name: str
    function: Function
    higher_is_better: bool = True
    of: Literal["answers", "probabilities"] = "answers"

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or self.name in ("loss", "accuracy", "r2"):
            raise UserError(f"a metric needs a name of its own that is a Python identifier, got {self.name!r}")

    def __call__(self, outputs: Tensor, y: Tensor, objective: Objective, task: Task) -> float:
        """The metric of a network's outputs; NaN where it is not defined, such as ROC-AUC with a single class."""
        answers = objective.answer(outputs) if self.of == "answers" else objective.probabilities(outputs)
        if answers is None:
            raise UserError(f"the metric {self.name!r} needs probabilities, which a {task.kind} task does not have")
        targets, predictions = (task.restore(each.cpu()).numpy() for each in (y, answers))
        if task.kind == "regression" and task.outputs == 1:
            targets, predictions = targets[:, 0], predictions[:, 0]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return float(self.function(targets, predictions))
        except ValueError:  # what scikit-learn raises for a metric that is not defined for these targets
            return float("nan")


def find_metric(name: str, task: Task) -> Metric:
    """A metric of scikit-learn by its name.

    Args:
        name: `balanced_accuracy`, `f1`, `roc_auc`, `average_precision` or `log_loss` of classes; `f1`, `roc_auc` or
            `average_precision` of labels, averaged over them; `rmse` or `mae` of numbers.
        task: What is predicted.
    """
    functions = _FUNCTIONS[task.kind]
    if name not in functions:
        raise unknown(
            f"metric for {task.kind}", name, ("loss", "r2" if task.kind == "regression" else "accuracy", *functions)
        )
    of: Literal["answers", "probabilities"] = "probabilities" if name in _OF_PROBABILITIES else "answers"
    several = name == "f1" and not (task.kind == "classification" and task.outputs == 2)
    return Metric(name, _mean_f1 if several else functions[name], name not in LOWER_IS_BETTER, of)


def metric_names(kind: str) -> tuple[str, ...]:
    """The metrics of scikit-learn that a kind of task has."""
    return tuple(_FUNCTIONS[kind])


def _f1(y: Any, answers: Any) -> float:  # noqa: ANN401
    """F1 of the second of two classes."""
    from sklearn import metrics  # type: ignore[import-untyped]

    return float(metrics.f1_score(y, answers, zero_division=0.0))


def _mean_f1(y: Any, answers: Any) -> float:  # noqa: ANN401
    """F1, averaged over classes or labels."""
    from sklearn import metrics

    return float(metrics.f1_score(y, answers, average="macro", zero_division=0.0))


def _roc_auc(y: Any, probabilities: Any) -> float:  # noqa: ANN401
    from sklearn import metrics

    if np.ndim(y) == 2:
        return float(metrics.roc_auc_score(y, probabilities, average="macro"))
    if probabilities.shape[1] == 2:
        return float(metrics.roc_auc_score(y, probabilities[:, 1]))
    classes = np.arange(probabilities.shape[1])
    exact = probabilities.astype(np.float64)
    return float(metrics.roc_auc_score(y, exact / exact.sum(1, keepdims=True), multi_class="ovr", labels=classes))


def _average_precision(y: Any, probabilities: Any) -> float:  # noqa: ANN401
    from sklearn import metrics

    if np.ndim(y) == 1 and probabilities.shape[1] == 2:
        return float(metrics.average_precision_score(y, probabilities[:, 1]))
    truth = y if np.ndim(y) == 2 else np.equal.outer(y, np.arange(probabilities.shape[1]))
    return float(metrics.average_precision_score(truth, probabilities, average="macro"))


def _log_loss(y: Any, probabilities: Any) -> float:  # noqa: ANN401
    from sklearn import metrics

    exact = probabilities.astype(np.float64)
    return float(metrics.log_loss(y, exact / exact.sum(1, keepdims=True), labels=np.arange(probabilities.shape[1])))


def _from_sklearn(name: str) -> Function:
    def function(y: Any, answers: Any) -> float:  # noqa: ANN401
        from sklearn import metrics

        return float(getattr(metrics, name)(y, answers))

    return function


_OF_PROBABILITIES = frozenset({"roc_auc", "average_precision", "log_loss"})
_FUNCTIONS: dict[str, dict[str, Function]] = {
    "classification": {
        "balanced_accuracy": _from_sklearn("balanced_accuracy_score"),
        "f1": _f1,
        "roc_auc": _roc_auc,
        "average_precision": _average_precision,
        "log_loss": _log_loss,
    },
    "multilabel": {"f1": _f1, "roc_auc": _roc_auc, "average_precision": _average_precision},
    "regression": {"rmse": _from_sklearn("root_mean_squared_error"), "mae": _from_sklearn("mean_absolute_error")},
}
