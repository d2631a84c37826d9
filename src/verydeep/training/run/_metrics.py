"""What a run measured: the metrics of one epoch, and how the run ended; both as JSON and back."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from verydeep.errors import UserError

Extra = Mapping[str, Any]


@dataclass(frozen=True, repr=False)
class EpochMetrics:
    """What was measured in one epoch; one line of metrics.jsonl.

    What was not measured is None. A loss that is not a finite number, as of an epoch that diverged, is infinite.

    Attributes:
        epoch: The number of the epoch, counted from 1; 0 for a network that was not trained.
        lr: The learning rate of the last step.
        loss: Mean loss of the training batches during the epoch, while the weights changed.
        accuracy: Accuracy on the same batches.
        train_loss: Mean loss on the training set after the epoch; measured with `TrainConfig.evaluate_train`.
        train_accuracy: Accuracy on the training set after the epoch.
        valid_loss: Mean loss on the validation set.
        valid_accuracy: Accuracy on the validation set.
        test_loss: Mean loss on the test set; measured with `TrainConfig.evaluate_test`.
        test_accuracy: Accuracy on the test set.
        seconds: Training time from the beginning of the run.
        extra: Further metrics, by name: of a regression `r2`, `valid_r2` and so on, and those of `train(metrics=...)`.
            Entries that others added to the line are kept.

    Example:
        >>> from verydeep.training import EpochMetrics
        >>> line = EpochMetrics(epoch=3, lr=0.1, loss=0.25, accuracy=0.9)
        >>> line.accuracy, line.test_accuracy
        (0.9, None)
    """

    epoch: int
    lr: float = 0.0
    loss: float | None = None
    accuracy: float | None = None
    train_loss: float | None = None
    train_accuracy: float | None = None
    valid_loss: float | None = None
    valid_accuracy: float | None = None
    test_loss: float | None = None
    test_accuracy: float | None = None
    seconds: float = 0.0
    extra: Extra = field(default_factory=dict, hash=False)

    def __repr__(self) -> str:
        values = ((name, getattr(self, name)) for name in (*_NUMBERS, "extra"))
        shown = (f"{name}={_shorten(value)}" for name, value in values if value is not None and value != {})
        return f"EpochMetrics({', '.join(shown)})"

    def get(self, name: str) -> float | None:
        """A metric by its name, such as `valid_accuracy` or `test_r2`; None if it was not measured."""
        value = getattr(self, name) if name in _NUMBERS else self.extra.get(name)
        return value if isinstance(value, int | float) else None

    def to_dict(self) -> dict[str, Any]:
        """The line as it is stored: without what was not measured, and with None for what is not a finite number."""
        values = {name: getattr(self, name) for name in _NUMBERS} | dict(self.extra)
        return {name: _finite(value) for name, value in values.items() if value is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "EpochMetrics":
        """The reverse of `to_dict`; raises a `UserError` if an entry has the wrong type."""
        numbers = {name: _number(name, values[name]) for name in _NUMBERS if name in values}
        if type(numbers.get("epoch")) is not int:
            raise UserError("'epoch' is not a whole number")
        if not 0 <= numbers.get("seconds", 0.0) < math.inf:
            raise UserError("'seconds' is not a time")
        return cls(**numbers, extra={name: value for name, value in values.items() if name not in _NUMBERS})


_NUMBERS = tuple(each.name for each in fields(EpochMetrics) if each.name != "extra")


@dataclass(frozen=True)
class RunSummary:
    """How a run ended; the content of summary.json.

    Attributes:
        status: `finished`, `stopped early` (`TrainConfig.patience`), `diverged`, or `pruned` from another run.
        epochs: Epochs completed.
        last: The metrics of the last epoch.
        best: The metrics of the best epoch on validation data, by `TrainConfig.metric`; None without validation data.
        parameters: The number of parameters of the network.

    Example:
        >>> from verydeep.training import RunSummary
        >>> RunSummary("finished", epochs=10, last=None, best=None).status
        'finished'
    """

    status: str
    epochs: int
    last: EpochMetrics | None
    best: EpochMetrics | None
    parameters: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The summary as it is stored."""
        return {
            "status": self.status,
            "epochs": self.epochs,
            "parameters": self.parameters,
            "last": {} if self.last is None else self.last.to_dict(),
            "best": None if self.best is None else self.best.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "RunSummary":
        """The reverse of `to_dict`; further entries are ignored, and a `UserError` is raised for a wrong one."""
        status, epochs, parameters = (values.get(name) for name in ("status", "epochs", "parameters"))
        if not isinstance(status, str) or type(epochs) is not int or type(parameters) not in (int, type(None)):
            raise UserError("'status', 'epochs' or 'parameters' is missing or has the wrong type")
        last, best = (_read_line(name, values) for name in ("last", "best"))
        return cls(status, epochs, last, best, parameters)


@dataclass(frozen=True)
class Selection:
    """By which metric on validation data the best epoch is selected; ties are broken by the loss.

    Attributes:
        metric: The name of the metric, such as `accuracy` or `loss`.
        higher_is_better: Whether the highest value is the best.
    """

    metric: str = "accuracy"
    higher_is_better: bool = True

    def value(self, line: EpochMetrics) -> float | None:
        """The metric of an epoch, negative if lower is better; None if it was not measured or is not a number."""
        value = line.get(f"valid_{self.metric}")
        if value is None or math.isnan(value):
            return None
        return value if self.higher_is_better else -value


def best_epoch(metrics: Sequence[EpochMetrics], selection: Selection) -> EpochMetrics | None:
    """The best epoch on validation data; None without validation data."""
    lines = [
        (value, -_or_infinite(line.valid_loss), line)
        for line in metrics
        if (value := selection.value(line)) is not None
    ]
    return max(lines, key=lambda each: each[:2], default=(0.0, 0.0, None))[2]


def _or_infinite(loss: float | None) -> float:
    return math.inf if loss is None else loss


def _shorten(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _finite(value: Any) -> Any:  # noqa: ANN401 - what others added may be of any type
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(name: str, value: object) -> Any:  # noqa: ANN401 - an int stays one, for the epoch
    if value is None:
        return math.inf
    if not (type(value) is int or type(value) is float):
        raise UserError(f"'{name}' is not a number")
    return value if abs(value) <= sys.float_info.max else math.inf


def _read_line(name: str, values: Mapping[str, Any]) -> EpochMetrics | None:
    line = values.get(name)
    if name not in values or not isinstance(line, dict | None):
        raise UserError(f"'{name}' is missing or has the wrong type")
    return EpochMetrics.from_dict(line) if line else None
