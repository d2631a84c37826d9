"""What every highway layer has in common: Equation 2, closing, and a look inside."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from verydeep.nn.functional import highway


class Trace(NamedTuple):
    """What happened inside a highway layer (or, with a leading layer dimension, a stack of them) for one input."""

    h: Tensor  # block state
    t: Tensor  # transform gate output
    c: Tensor  # carry gate output
    y: Tensor  # block output


class HighwayLayer(nn.Module):
    """Base of the single layers. A subclass says what H, T and C are; this class says what is done with them."""

    def transforms(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """H(x), T(x) and C(x), the last None when it is 1 - T(x)."""
        raise NotImplementedError

    def x_hat(self, x: Tensor) -> Tensor:
        """What is carried: x itself, or x with the width of the output where the layer changes it."""
        return x

    def forward(self, x: Tensor, closed: bool = False) -> Tensor:
        """The block output; a closed layer (all transform gates 0) copies its input."""
        if closed:
            return self.x_hat(x)
        return highway(*self._parts(x))

    def trace(self, x: Tensor, closed: bool = False) -> Trace:
        """The block output together with what it was made of. Nothing is kept in the layer."""
        if closed:
            return closed_trace(self.x_hat(x))
        return open_trace(*self._parts(x))

    def _parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """What is carried, then H, T and C."""
        return self.x_hat(x), *self.transforms(x)


def open_trace(x: Tensor, h: Tensor, t: Tensor, c: Tensor | None) -> Trace:
    """The trace of an open layer."""
    return Trace(h, t, 1 - t if c is None else c, highway(x, h, t, c))


def closed_trace(x: Tensor) -> Trace:
    """The trace of a closed layer: gates 0, everything carried, and no block state computed (zeros)."""
    return Trace(torch.zeros_like(x), torch.zeros_like(x), torch.ones_like(x), x)
