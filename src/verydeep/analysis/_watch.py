"""A pass that shows what happens inside every highway layer."""

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from verydeep.analysis._view import Pass, Unit
from verydeep.errors import UserError
from verydeep.nn import Highway, HighwayLayer


@dataclass(frozen=True)
class Look:
    """One layer and one batch; the blocks are the dimension after the samples, `(batch, block, *positions)`."""

    x: Tensor  # what is carried: the input, or x-hat
    t: Tensor  # transform gate output
    y: Tensor  # block output


class Watch(Pass):
    """Looks at every layer; `looks` has one for each, in the order of the data."""

    def __init__(self, samples: int) -> None:
        super().__init__()
        self.samples = samples
        self.looks: list[Look] = []

    def highway(self, unit: Unit, x: Tensor) -> Tensor:
        trace = unit.module.trace(x)
        if isinstance(unit.module, HighwayLayer):
            self._add(unit, unit.module.x_hat(x), trace.t, trace.y)
            return trace.y
        for t, y in zip(trace.t, trace.y, strict=True):
            self._add(unit, x, t, y)
            x = y
        return x

    def _add(self, unit: Unit, x: Tensor, t: Tensor, y: Tensor) -> None:
        if t.dim() < 2 or len(t) != self.samples:
            want = f"the first dimension must be the {self.samples} samples of the batch"
            raise UserError(f"the gates of '{unit.name}' have shape {tuple(t.shape)}: {want}")
        dim = block_dim(unit.module)
        self.looks.append(Look(*(value.movedim(dim, 1) for value in (x, t, y))))


def block_dim(module: nn.Module) -> int:
    """Where a layer's blocks or feature maps are: the last dimension, but the one after the samples in feature maps."""
    known: int | None = getattr(module, "block_dim", None)
    if known is not None:
        return known
    maps = isinstance(module, Highway) and any(isinstance(m, _ConvNd | _BatchNorm) for m in module.modules())
    return 1 if maps else -1
