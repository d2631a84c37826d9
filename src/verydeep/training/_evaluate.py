"""Evaluation of a network on a split: loss, accuracy, and which classes it confuses."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from verydeep import objectives
from verydeep.cpu import cpu_settings
from verydeep.data import Batches, Split
from verydeep.objectives import Classification, Objective, Totals
from verydeep.training.step._process_group import ProcessGroup

_BATCH_SIZE = 1000


def evaluate(
    model: nn.Module,
    split: Split,
    group: ProcessGroup,
    forward: Callable[[Tensor], Tensor] | None = None,
    objective: Objective | None = None,
) -> Totals:
    """Measure a model in evaluation mode; the processes of a group share the work.

    Args:
        model: The model; it is put into evaluation mode, and back into its mode afterwards.
        split: The samples, on any device; batches are moved to the group's.
        group: The processes.
        forward: Computes the logits in place of the model itself (compiled, or in another precision).
        objective: What is measured; by default, classification.
    """
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            totals = objectives.evaluate_batches(
                model if forward is None else forward,
                _batches(_part_of(split, group)),
                objective or Classification(),
                device=group.device,
            )
            return Totals(group.sum(totals.values), len(split))
    finally:
        model.train(training)


@dataclass(frozen=True)
class Confusion:
    """A network's answers on a split.

    Attributes:
        classes: The names of the classes.
        counts: The number of samples of each true class (row) with each answer (column), int64.
        loss: Mean cross-entropy.
    """

    classes: tuple[str, ...]
    counts: Tensor
    loss: float

    @property
    def samples(self) -> int:
        """The number of samples."""
        return int(self.counts.sum())

    @property
    def accuracy(self) -> float:
        """Share of correct answers."""
        return int(self.counts.diagonal().sum()) / self.samples

    @property
    def class_accuracy(self) -> list[float | None]:
        """Share of correct answers per true class; None for a class without samples."""
        correct, all_ = self.counts.diagonal().tolist(), self.counts.sum(1).tolist()
        return [c / n if n else None for c, n in zip(correct, all_, strict=True)]

    def mistakes(self) -> list[tuple[str, str, int]]:
        """True class, answer and count of every kind of wrong answer, the most frequent first."""
        wrong = self.counts - self.counts.diagonal().diag()
        counted = [(int(wrong[i, j]), int(i), int(j)) for i, j in wrong.nonzero()]
        ordered = sorted(counted, key=lambda mistake: (-mistake[0], mistake[1:]))
        return [(self.classes[i], self.classes[j], count) for count, i, j in ordered]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "samples": self.samples,
            "loss": self.loss if math.isfinite(self.loss) else None,
            "accuracy": self.accuracy,
            "classes": list(self.classes),
            "class_accuracy": self.class_accuracy,
            "confusion": self.counts.tolist(),
        }


def confusion(
    model: nn.Module, split: Split, classes: tuple[str, ...], device: torch.device | str = "cpu"
) -> Confusion:
    """Count a model's answers on every sample of a split, in evaluation mode on `device`."""
    model = model.eval().to(device)
    counts = torch.zeros(len(classes) ** 2, dtype=torch.int64)

    def count(logits: Tensor, y: Tensor) -> None:
        nonlocal counts
        counts += (y * len(classes) + logits.argmax(1)).cpu().bincount(minlength=len(counts))

    with cpu_settings(), torch.inference_mode():
        totals = objectives.evaluate_batches(model, _batches(split), Classification(), device=device, observe=count)
    return Confusion(classes, counts.view(len(classes), -1), totals.loss)


def _batches(split: Split) -> Iterator[tuple[Tensor, Tensor]]:
    return iter(Batches(split, _BATCH_SIZE, seed=0, shuffle=False).epoch(0))


def _part_of(split: Split, group: ProcessGroup) -> Split:
    """The rows of a split that this process measures."""
    first, end = (len(split) * number // group.size for number in (group.rank, group.rank + 1))
    return replace(split, x=split.x[first:end], y=split.y[first:end])
