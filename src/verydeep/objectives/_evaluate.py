"""The evaluation loop: loss and correct answers over a split."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from verydeep.objectives._objective import Objective


@dataclass(frozen=True)
class Totals:
    """Sums over samples.

    Attributes:
        values: Loss and number of correct answers, float64, `(2,)`; among several processes, those of this one.
        samples: How many samples were measured.
    """

    values: Tensor
    samples: int

    @property
    def loss(self) -> float:
        """Mean loss."""
        return float(self.values[0]) / self.samples

    @property
    def accuracy(self) -> float:
        """Share of correct answers."""
        return float(self.values[1]) / self.samples

    @property
    def error(self) -> float:
        """Share of wrong answers."""
        return (self.samples - float(self.values[1])) / self.samples


def evaluate(
    forward: Callable[[Tensor], Tensor],
    batches: Iterable[tuple[Tensor, Tensor]],
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
    """
    values, samples = torch.zeros(2, dtype=torch.float64, device=device), 0
    with torch.no_grad():
        for x, y in batches:
            outputs, targets = forward(x.to(device)), y.to(device)
            objective.check(outputs, targets)
            values += objective.totals(outputs, targets)
            samples += len(y)
            if observe is not None:
                observe(outputs, targets)
    return Totals(values, samples)
