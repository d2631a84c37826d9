"""What every highway layer does with a batch, and running statistics of it over many batches."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from verydeep.analysis.activity._activity_results import Array
from verydeep.analysis.blocks._blocks import ForwardMode, LayerGroup
from verydeep.errors import UserError
from verydeep.nn import Highway, HighwayLayer, ResidualStack


@dataclass(frozen=True)
class LayerActivity:
    """One layer on one batch; blocks are the dimension after the samples, `(batch, block, *positions)`.

    Attributes:
        x: What the layer carries: its input, or x-hat.
        t: Transform gate output.
        y: Block output.
    """

    x: Tensor
    t: Tensor
    y: Tensor

    def sample(self, index: int) -> "LayerActivity":
        """A single sample of the batch, in its own memory."""
        return LayerActivity(self.x[index].clone(), self.t[index].clone(), self.y[index].clone())


class Recorder(ForwardMode):
    """Records the activity of every layer; `layers` has one entry per layer, in forward order."""

    def __init__(self, samples: int) -> None:
        super().__init__()
        self.samples = samples
        self.layers: list[LayerActivity] = []

    def highway(self, group: LayerGroup, x: Tensor) -> Tensor:
        assert not isinstance(group.module, ResidualStack)  # only highway layers are instrumented for this
        trace = group.module.trace(x)
        if isinstance(group.module, HighwayLayer):
            self._add(group, group.module.x_hat(x), trace.t, trace.y)
            return trace.y
        for t, y in zip(trace.t, trace.y, strict=True):
            self._add(group, x, t, y)
            x = y
        return x

    def _add(self, group: LayerGroup, x: Tensor, t: Tensor, y: Tensor) -> None:
        if t.dim() < 2 or len(t) != self.samples:
            expected = f"the first dimension must be the {self.samples} samples of the batch"
            raise UserError(f"the gates of '{group.name}' have shape {tuple(t.shape)}: {expected}")
        dim = _block_dim(group.module)
        self.layers.append(LayerActivity(*(value.movedim(dim, 1) for value in (x, t, y))))


def _block_dim(module: nn.Module) -> int:
    """The dimension of a layer's blocks: 1, after the samples, for feature maps, and the last one otherwise."""
    known: int | None = getattr(module, "block_dim", None)
    if known is not None:
        return known
    maps = isinstance(module, Highway) and any(isinstance(m, _ConvNd | _BatchNorm) for m in module.modules())
    return 1 if maps else -1


class Moments:
    """Running count, mean and sum of squared deviations of every column, per group of rows, in float64.

    Batches are merged as in Chan, Golub & LeVeque (1979), so a million batches are as exact as one.
    """

    def __init__(self, groups: int = 1) -> None:
        self.count = torch.zeros(groups, 1, dtype=torch.float64)
        self.mean = torch.zeros(groups, 1, dtype=torch.float64)  # (group, column) after the first batch
        self.squares = torch.zeros(groups, 1, dtype=torch.float64)

    def add(self, values: Tensor, group: Tensor | None = None) -> None:
        """Add rows, `(row, column)`; with several groups, `group` gives the group of every row."""
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
        difference = mean - self.mean
        self.mean = self.mean + difference * (count / total)
        self.squares = self.squares + squares + difference.square() * (self.count * count / total)
        self.count = self.count + count

    @property
    def variance(self) -> Tensor:
        """Mean squared deviation of each column."""
        return self.squares / self.count.clamp(min=1)


def to_array(values: Tensor) -> Array:
    """A float64 array with its own memory."""
    return np.array(values.detach().cpu().numpy(), dtype=np.float64)
