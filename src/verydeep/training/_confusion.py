"""Which classes a network takes for which."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from verydeep.data import Batches, Split
from verydeep.training._evaluate import losses, pair

_BATCH = 1000


@dataclass(frozen=True)
class Confusion:
    """A network's answers on a split.

    Attributes:
        classes: Their names.
        counts: Samples of each true class (row) by the class the network says (column), int64.
        loss: Mean cross-entropy.
    """

    classes: tuple[str, ...]
    counts: Tensor
    loss: float

    @property
    def samples(self) -> int:
        """How many there were."""
        return int(self.counts.sum())

    @property
    def accuracy(self) -> float:
        """Share of samples classified right."""
        return int(self.counts.diagonal().sum()) / self.samples

    @property
    def class_accuracy(self) -> list[float | None]:
        """The same for each true class; None for one without samples."""
        right, all_ = self.counts.diagonal().tolist(), self.counts.sum(1).tolist()
        return [r / n if n else None for r, n in zip(right, all_, strict=True)]

    def mistakes(self) -> list[tuple[str, str, int]]:
        """True class, answer and how often, for every wrong answer; the most frequent first."""
        wrong = self.counts - self.counts.diagonal().diag()
        pairs = [(int(wrong[i, j]), int(i), int(j)) for i, j in wrong.nonzero()]
        ordered = sorted(pairs, key=lambda pair: (-pair[0], pair[1:]))
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
    """Ask a model, in evaluation mode on `device`, about every sample of a split."""
    model = model.eval().to(device)
    totals = torch.zeros(2, dtype=torch.float64, device=device)
    counts = torch.zeros(len(classes) ** 2, dtype=torch.int64)
    with torch.inference_mode():
        for x, y in Batches(split, _BATCH, seed=0, shuffle=False).epoch(0):
            logits = model(x.to(device))
            totals += pair(*losses(logits, y.to(device)))
            counts += (y * len(classes) + logits.argmax(1).cpu()).bincount(minlength=len(counts))
    return Confusion(classes, counts.view(len(classes), -1), totals[0].item() / len(split))
