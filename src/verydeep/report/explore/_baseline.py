"""Whether a network has learned anything: its score against that of an answer which is always the same."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from verydeep.data import Task


@dataclass(frozen=True)
class Baseline:
    """How good the network is on held-out samples, and how good the best constant answer is.

    Attributes:
        score: Accuracy, share of correct labels, or R2.
        constant: The same measure for the most frequent class, the most frequent value of each label, or the mean.
        name: The most frequent class; "" for others.
        samples: The number of samples that both were measured on.
    """

    score: float
    constant: float
    name: str
    samples: int

    @property
    def is_beaten(self) -> bool:
        """Whether the network is better by more than two standard errors; an R2 above 0 is enough."""
        error = math.sqrt(self.constant * (1 - self.constant) / max(self.samples, 1))
        return self.score > self.constant + 2 * error


def measure_baseline(outputs: Tensor, y: Tensor, task: Task) -> Baseline:
    """Compare a network with the best constant answer.

    Args:
        outputs: What it gives for some samples.
        y: The targets of the same samples, as the network learns them.
        task: What it predicts.
    """
    if task.kind == "classification":
        counts = torch.bincount(y, minlength=len(task.names))
        score = float((outputs.argmax(1) == y).double().mean())
        return Baseline(score, float(counts.max()) / len(y), str(task.names[int(counts.argmax())]), len(y))
    if task.kind == "multilabel":
        labels = y > 0.5
        shares = labels.double().mean(0)
        score = float(((outputs > 0) == labels).double().mean())
        return Baseline(score, float(torch.maximum(shares, 1 - shares).mean()), "", len(y))
    y = y.double().reshape(len(y), -1)
    left = (outputs.double().reshape_as(y) - y).square().sum(0)
    spread = (y - y.mean(0)).square().sum(0)
    return Baseline(float((1 - left / spread.clamp_min(1e-12)).mean()), 0.0, "", len(y))
