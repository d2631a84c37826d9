"""The base class of highway layers: Equation 2, closing, and tracing."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from verydeep.nn.functional import highway


class Trace(NamedTuple):
    """The values inside a highway layer for one input; those of a stack have a leading layer dimension."""

    h: Tensor  # block state
    t: Tensor  # transform gate output
    c: Tensor  # carry gate output
    y: Tensor  # block output


class HighwayLayer(nn.Module):
    """Base class of single layers. A subclass defines H, T and C; this class combines them."""

    def transforms(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """H(x), T(x) and C(x); C is None if it is 1 - T(x)."""
        raise NotImplementedError

    def x_hat(self, x: Tensor) -> Tensor:
        """The carried tensor: x itself, or x with the width of the output if the layer changes it."""
        return x

    def forward(self, x: Tensor, closed: bool = False) -> Tensor:
        """The block output; a closed layer (all transform gates 0) copies its input."""
        if closed:
            return self.x_hat(x)
        return highway(*self._parts(x))

    def trace(self, x: Tensor, closed: bool = False) -> Trace:
        """The block output together with h, t and c. Nothing is stored in the layer."""
        if closed:
            return closed_trace(self.x_hat(x))
        return open_trace(*self._parts(x))

    def _parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """The carried tensor, then H, T and C."""
        return self.x_hat(x), *self.transforms(x)


def open_trace(x: Tensor, h: Tensor, t: Tensor, c: Tensor | None) -> Trace:
    """The trace of an open layer."""
    return Trace(h, t, 1 - t if c is None else c, highway(x, h, t, c))


def closed_trace(x: Tensor) -> Trace:
    """The trace of a closed layer: gates are 0, x is carried, and the block state is not computed (zeros)."""
    return Trace(torch.zeros_like(x), torch.zeros_like(x), torch.ones_like(x), x)
