"""The base class of highway layers: Equation 2, closing, and tracing."""

from collections.abc import Collection
from numbers import Integral
from typing import NamedTuple, NoReturn

import torch
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.nn.functional import highway


class Trace(NamedTuple):
    """The values inside highway layers for one input, without gradients.

    The trace of a single layer has tensors of the shape of its output. The trace of a stack has a leading dimension of
    layers. A gate that several blocks share keeps a size of 1 there. In a closed layer, t is 0, c is 1, y is the
    input, and h is not computed and is 0.

    Attributes:
        h: Block state, H(x).
        t: Transform gate output, T(x).
        c: Carry gate output, C(x); 1 - T(x) if the gates are coupled.
        y: Block output.

    Example:
        >>> import torch
        >>> from verydeep.nn import HighwayStack
        >>> trace = HighwayStack(width=8, depth=5).trace(torch.randn(2, 8), closed={3})
        >>> trace.t.shape
        torch.Size([5, 2, 8])
        >>> [bool(t.any()) for t in trace.t]
        [True, True, True, False, True]
    """

    h: Tensor
    t: Tensor
    c: Tensor
    y: Tensor


class Unscriptable:
    """A module that `torch.jit.script` refuses with a message of one line."""

    def __prepare_scriptable__(self) -> NoReturn:
        """Called by `torch.jit.script` before it compiles anything."""
        raise UserError(f"torch.jit.script does not support {type(self).__name__}; use torch.export.export instead")


class HighwayLayer(Unscriptable, nn.Module):
    """Base class of single highway layers: `y = H(x) * T(x) + x * C(x)` (Equation 2).

    A subclass defines `transforms`, and `x_hat` if its output has another shape than its input. Calling, closing,
    tracing and the analyses of `verydeep.analysis` then work.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from verydeep.nn import HighwayLayer
        >>> class Scaling(HighwayLayer):
        ...     def __init__(self, width):
        ...         super().__init__()
        ...         self.scale = nn.Parameter(torch.ones(width))
        ...         self.gate = nn.Parameter(torch.full((width,), -2.0))
        ...     def transforms(self, x):
        ...         return torch.tanh(self.scale * x), torch.sigmoid(self.gate).expand_as(x), None
        >>> layer, x = Scaling(4), torch.ones(1, 4)
        >>> layer(x)
        tensor([[0.9716, 0.9716, 0.9716, 0.9716]], grad_fn=...)
        >>> layer(x, closed=True)
        tensor([[1., 1., 1., 1.]])
    """

    def transforms(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """H(x), T(x) and C(x); C is None if it is 1 - T(x)."""
        raise NotImplementedError

    def x_hat(self, x: Tensor) -> Tensor:
        """The tensor that is carried: x, resized if the layer changes the width."""
        return x

    def forward(self, x: Tensor, closed: bool = False) -> Tensor:
        """The block output.

        Args:
            x: The input.
            closed: Whether to close the layer: all transform gates are 0, and it copies its input.
        """
        _check_switch(closed)
        if closed:
            return self.x_hat(x)
        return highway(*self._parts(x))

    @torch.no_grad()
    def trace(self, x: Tensor, closed: bool = False) -> Trace:
        """The block state, gates and block output for x, without gradients. Nothing is stored in the layer.

        Args:
            x: The input.
            closed: Whether to close the layer, as in `forward`.
        """
        _check_switch(closed)
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
    """The trace of a closed layer."""
    return Trace(torch.zeros_like(x), torch.zeros_like(x), torch.ones_like(x), x)


def stack_traces(rows: list[Trace], dim: int = 0) -> Trace:
    """The trace of several layers, with a new dimension of layers."""
    return Trace(*(torch.stack(column, dim) for column in zip(*rows, strict=True)))


def check_closed(closed: Collection[int], layers: int, owner: nn.Module) -> frozenset[int]:
    """The layers of a stack or network to close, counted from 0, from any collection of whole numbers."""
    if type(closed) is tuple and not closed:  # the default
        return frozenset()
    if isinstance(closed, str | int) or not isinstance(closed, Collection) or not all(map(_is_number, closed)):
        raise UserError(f"closed must be a set of layer numbers, counted from 0, such as {{0, 3}}; got {closed!r}")
    numbers = frozenset(int(layer) for layer in closed)
    wrong = [layer for layer in numbers if not 0 <= layer < layers]
    if not wrong:
        return numbers
    if layers == 0:
        raise UserError(f"cannot close layer {min(wrong)}: this {type(owner).__name__} has no highway layers")
    kind = "highway" if getattr(owner, "highway_depth", layers) else "residual"
    raise UserError(f"cannot close layer {min(wrong)}: the {kind} layers are numbered 0 to {layers - 1}")


def _is_number(layer: object) -> bool:
    """Whether this is a whole number of Python, NumPy or torch; a mask of booleans is not meant."""
    if isinstance(layer, Tensor):
        return layer.dim() == 0 and layer.dtype in (torch.int64, torch.int32)
    return isinstance(layer, Integral) and not isinstance(layer, bool)


def _check_switch(closed: bool) -> None:
    if not isinstance(closed, bool):
        raise UserError(f"closed must be True or False for a single layer, got {closed!r}")
