"""Means and variances of numbers that come in batches, without keeping the numbers."""

import numpy as np
import torch
from torch import Tensor

from verydeep.analysis._results import Array


class Moments:
    """Count, mean and sum of squared deviations of every column, group by group, in float64.

    Batches are merged as Chan, Golub & LeVeque (1979) do it, so that a million batches are as exact as one.
    """

    def __init__(self, groups: int = 1) -> None:
        self.count = torch.zeros(groups, 1, dtype=torch.float64)
        self.mean = torch.zeros(groups, 1, dtype=torch.float64)  # (group, column) after the first batch
        self.squares = torch.zeros(groups, 1, dtype=torch.float64)

    def add(self, values: Tensor, group: Tensor | None = None) -> None:
        """Take in rows, `(row, column)`; `group` says which group each belongs to, where there are several."""
        values = values.detach().cpu().double()
        if group is None:
            variance, mean = torch.var_mean(values, 0, correction=0, keepdim=True)
            count = torch.full((1, 1), len(values), dtype=torch.float64)
            self._merge(count, mean, variance * count)
            return
        group = group.cpu()
        count = torch.bincount(group, minlength=len(self.count)).double()[:, None]
        zeros = values.new_zeros(len(self.count), values.shape[1])
        mean = zeros.index_add(0, group, values) / count.clamp(min=1)
        squares = zeros.index_add(0, group, (values - mean[group]).square())
        self._merge(count, mean, squares)

    def _merge(self, count: Tensor, mean: Tensor, squares: Tensor) -> None:
        total = (self.count + count).clamp(min=1)
        apart = mean - self.mean
        self.mean = self.mean + apart * (count / total)
        self.squares = self.squares + squares + apart.square() * (self.count * count / total)
        self.count = self.count + count

    @property
    def variance(self) -> Tensor:
        """Mean squared deviation of each column."""
        return self.squares / self.count.clamp(min=1)


def array(values: Tensor) -> Array:
    """A result's array, in memory of its own."""
    return np.array(values.detach().cpu().numpy(), dtype=np.float64)
