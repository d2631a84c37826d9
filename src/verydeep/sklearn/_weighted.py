"""Training and measuring with a weight per sample."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep.data import Task
from verydeep.objectives import Classification, Metric, MultiLabel, Objective, Regression


class WeightedObjective(Objective):
    """Another objective whose losses are weighted. Targets have one more column, float32: the weights.

    Args:
        objective: The objective.
        largest: The largest weight in the data, so that a few heavy samples are not taken for divergence.
    """

    def __init__(self, objective: Objective, largest: float) -> None:
        self.objective, self.largest = objective, largest
        self.measure, self.size = objective.measure, objective.size

    @staticmethod
    def join(y: Tensor, weight: Tensor) -> Tensor:
        """Targets with their weights."""
        return torch.cat([y.float().reshape(len(y), -1), weight.float()[:, None]], dim=1)

    def targets(self, y: Tensor) -> Tensor:
        """Targets without their weights, as the other objective takes them."""
        return y[:, 0].long() if isinstance(self.objective, Classification) else y[:, :-1]

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (_losses(self.objective, outputs.float(), self.targets(y)) * y[:, -1]).sum()

    def answer(self, outputs: Tensor) -> Tensor:
        return self.objective.answer(outputs)

    def probabilities(self, outputs: Tensor) -> Tensor | None:
        return self.objective.probabilities(outputs)

    def errors(self, outputs: Tensor, y: Tensor) -> Tensor:
        return self.objective.errors(outputs, self.targets(y))

    def error_weights(self, values: Tensor, samples: int) -> Tensor:
        return self.objective.error_weights(values, samples)

    def check(self, outputs: Tensor, y: Tensor) -> None:
        self.objective.check(outputs, self.targets(y))

    def sums(self, loss: Tensor, outputs: Tensor, y: Tensor) -> Tensor:
        return self.objective.sums(loss, outputs, self.targets(y))

    def score(self, values: Tensor, samples: int) -> float:
        return self.objective.score(values, samples)

    def guess_loss(self, outputs: int) -> float:
        return self.largest * self.objective.guess_loss(outputs)


@dataclass(frozen=True)
class MetricWithoutWeights(Metric):
    """A metric of targets that have a column of weights, which it ignores."""

    def __call__(self, outputs: Tensor, y: Tensor, objective: Objective, task: Task) -> float:
        assert isinstance(objective, WeightedObjective)
        return super().__call__(outputs, objective.targets(y), objective.objective, task)


def _losses(objective: Objective, outputs: Tensor, y: Tensor) -> Tensor:
    """The loss of each sample."""
    if isinstance(objective, Classification):
        return F.cross_entropy(outputs, y, reduction="none", label_smoothing=objective.label_smoothing)
    if isinstance(objective, MultiLabel):
        weight = None if objective.positive_weight is None else objective.positive_weight.to(outputs.device)
        return F.binary_cross_entropy_with_logits(outputs, y, reduction="none", pos_weight=weight).mean(1)
    assert isinstance(objective, Regression)
    return objective.losses(outputs, y)
