"""The evaluation loop: loss and score over a split."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from verydeep.float64 import float64_device
from verydeep.objectives._classification import Classification
from verydeep.objectives._inputs import Inputs, move_inputs
from verydeep.objectives._objective import Objective
from verydeep.words import named_score


@dataclass(frozen=True, repr=False)
class Totals:
    """Sums over samples.

    Attributes:
        values: The sums that the objective adds up, loss and number of correct predictions first, float64, `(size,)`;
            among several processes, those of this one.
        samples: How many samples were measured.
        objective: What was measured; by default, classification.

    Example:
        >>> import torch
        >>> from verydeep.objectives import Totals
        >>> totals = Totals(torch.tensor([50.0, 90.0]), samples=100)
        >>> totals
        <Totals: loss 0.5, accuracy 90.00%, 100 samples>
        >>> totals.loss, totals.accuracy, totals.error
        (0.5, 0.9, 0.1)
    """

    values: Tensor
    samples: int
    objective: Objective = field(default_factory=Classification)

    def __repr__(self) -> str:
        if self.samples == 0:
            return "<Totals: no samples>"
        score = named_score(self.objective.measure, self.score)
        return f"<Totals: loss {self.loss:.4g}, {score}, {self.samples:,} samples>"

    @property
    def loss(self) -> float:
        """Mean loss."""
        return float(self.values[0]) / self.objective.count(self.values, self.samples)

    @property
    def score(self) -> float:
        """How good the predictions are, at best 1: the accuracy, or R2 of a regression."""
        return self.objective.score(self.values, self.samples)

    @property
    def accuracy(self) -> float:
        """Fraction of correct predictions; for a regression, R2."""
        return self.score

    @property
    def error(self) -> float:
        """Fraction of wrong predictions; for a regression, the fraction of the variance that is not explained."""
        if self.objective.measure in ("accuracy", "token_accuracy"):
            count = self.objective.count(self.values, self.samples)
            return (count - float(self.values[1])) / count
        return 1 - self.score


def evaluate_batches(
    forward: Callable[[Any], Tensor],
    batches: Iterable[tuple[Inputs, Tensor]],
    objective: Objective,
    *,
    device: torch.device | str = "cpu",
    observe: Callable[[Tensor, Tensor], None] | None = None,
) -> Totals:
    """Measure a network on batches, without gradients.

    Args:
        forward: Computes outputs; a module must already be in evaluation mode.
        batches: Pairs of samples and targets.
        objective: What is measured.
        device: Where the network is; batches are moved there.
        observe: Called with the outputs and targets of every batch.

    Example:
        >>> import torch
        >>> from verydeep.objectives import Classification, evaluate_batches
        >>> batches = [(torch.eye(3), torch.tensor([0, 1, 2])), (torch.eye(3), torch.tensor([0, 1, 1]))]
        >>> totals = evaluate_batches(lambda x: x, batches, Classification())
        >>> totals.samples, round(totals.accuracy, 3)
        (6, 0.833)
    """
    values, samples = torch.zeros(objective.size, dtype=torch.float64, device=float64_device(device)), 0
    with torch.no_grad():
        for x, y in batches:
            outputs, targets = forward(move_inputs(x, device)), y.to(device)
            objective.check(outputs, targets)
            values += objective.totals(outputs, targets)
            samples += len(y)
            if observe is not None:
                observe(outputs, targets)
    return Totals(values, samples, objective)
