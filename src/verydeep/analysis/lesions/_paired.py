"""Differences between a network and itself with layers closed, paired over samples, and how uncertain they are.

Both networks see the same samples, so most of what makes single samples easy or hard cancels out: the standard error of
the difference is much smaller than that of either score.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from verydeep.analysis.activity._activity_results import Array
from verydeep.objectives import draw_samples

_DRAWS, _FEWEST = 1000, 200
_MOST_WEIGHTS = 50_000_000  # weights of samples in all draws, before fewer draws are made
_ROUNDING = 1e-7  # errors are counts, but their quotients are rounded


class PairedSums:
    """Sums over samples of differences and of their products, from which their standard errors follow.

    Args:
        candidates: The number of networks that are compared with the same baseline.
        parts: The number of parts that a difference has.
    """

    def __init__(self, candidates: int, parts: int) -> None:
        self.samples = 0
        self.sums = torch.zeros(candidates, parts, dtype=torch.float64)
        self.products = torch.zeros(candidates, parts, parts, dtype=torch.float64)

    def add(self, differences: Tensor) -> None:
        """Add a batch, `(candidate, sample, part)`."""
        differences = differences.cpu()
        self.samples += differences.shape[1]
        self.sums += differences.sum(1)
        self.products += differences.transpose(1, 2) @ differences

    def standard_errors(self, weights: Tensor) -> Array:
        """The standard error of the mean of each candidate's weighted difference, `(candidate,)`."""
        mean = self.sums @ weights / self.samples
        square = (self.products @ weights) @ weights / self.samples
        variance = (square - mean.square()).clamp(min=0)
        found: Array = (variance / max(self.samples - 1, 1)).sqrt().numpy()
        return found


def standard_errors(differences: NDArray[np.floating]) -> Array:
    """The standard error of the mean of each column of `(sample, column)`."""
    with np.errstate(invalid="ignore", over="ignore"):
        found: Array = differences.std(0, dtype=np.float64) / np.sqrt(max(len(differences) - 1, 1))
    return found


def bootstrap_means(differences: NDArray[np.floating]) -> NDArray[np.float32]:
    """The mean of each column of `(sample, column)` in random draws of the samples, always the same: `(draw, column)`.

    There are 1,000 draws, fewer if there are very many samples. A column that is not finite has infinite means.
    """
    samples, columns = differences.shape
    finite = np.isfinite(differences).all(0)
    values = np.where(finite, differences, 0).astype(np.float32)
    draws = min(_DRAWS, max(_FEWEST, _MOST_WEIGHTS // samples))
    means = np.empty((draws, columns), np.float32)
    for rows, counts in draw_samples(samples, draws, np.random.default_rng(0)):
        means[rows] = counts.astype(np.float32) @ values / samples
    means[:, ~finite] = np.inf
    return means


def most_closed(rises: NDArray[np.floating], allowed: Array) -> NDArray[np.intp]:
    """The most layers that can be closed, given the rise of the error for 0, 1, ... closed layers in the last axis."""
    within = rises <= allowed + _ROUNDING
    within[..., 0] = True
    last: NDArray[np.intp] = within.shape[-1] - 1 - np.argmax(within[..., ::-1], axis=-1)
    return last
