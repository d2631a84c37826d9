"""What is predicted: one of several classes, numbers, or any number of labels."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from verydeep.data._config import TaskKind
from verydeep.errors import UserError
from verydeep.float64 import as_float64


@dataclass(frozen=True)
class Task:
    """What a dataset asks for, and how the outputs of a network are read.

    It holds plain numbers and text only, so that it can be saved as JSON with a run.

    Attributes:
        kind: `classification`, `regression` or `multilabel`.
        names: The classes, the target columns, or the labels; output i of a network belongs to `names[i]`.
        mean: The mean of each regression target in the training data.
        deviation: The standard deviation of each regression target in the training data. A network learns
            `(target - mean) / deviation`.
        target: The columns of a table that held the targets; empty for other data.

    Example:
        >>> import torch
        >>> from verydeep.data import Task
        >>> task = Task("regression", ("price",), mean=(200.0,), deviation=(50.0,))
        >>> task.restore(torch.tensor([[0.5]]))
        tensor([[225.]], dtype=torch.float64)
    """

    kind: TaskKind
    names: tuple[str, ...]
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    target: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        expected = len(self.names) if self.kind == "regression" else 0
        if not len(self.mean) == len(self.deviation) == expected:
            raise UserError(f"a {self.kind} task of {len(self.names)} names needs {expected} means and deviations")

    @property
    def outputs(self) -> int:
        """The number of outputs of a network: classes, labels or targets."""
        return len(self.names)

    def standardise(self, targets: Tensor) -> Tensor:
        """Regression targets as a network learns them, float32."""
        return ((targets.double() - self._mean) / self._deviation).float()

    def restore(self, values: Tensor) -> Tensor:
        """Outputs or targets of a regression in their original units, float64; others unchanged."""
        if self.kind != "regression":
            return values
        exact = as_float64(values)
        return exact * self._deviation.to(exact.device) + self._mean.to(exact.device)

    @cached_property
    def _mean(self) -> Tensor:
        return torch.tensor(self.mean, dtype=torch.float64)

    @cached_property
    def _deviation(self) -> Tensor:
        return torch.tensor(self.deviation, dtype=torch.float64)
