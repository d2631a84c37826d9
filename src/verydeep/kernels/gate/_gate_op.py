"""The fused highway operation as torch operators, forward and backward."""

from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from verydeep.kernels.runtime._threads import Call, run_together

if TYPE_CHECKING:
    from verydeep.kernels.runtime._compile import Function

_NUMBER = 4  # bytes
_SHARE = 2**15  # numbers that make a thread worth its cost


def gate_reference(z: Tensor, x: Tensor, affine_maps: int, dim: int, activation: str) -> Tensor:
    """What the operator computes, in torch's operations."""
    h, t, *c = z.chunk(affine_maps, dim)
    h, t = (torch.tanh if activation == "tanh" else torch.relu)(h), torch.sigmoid(t)
    return h * t + x * torch.sigmoid(c[0]) if c else torch.lerp(x, h, t)


@torch.library.custom_op("verydeep::gate", mutates_args=())
def highway_gate(z: Tensor, x: Tensor, affine_maps: int, dim: int, activation: str) -> Tensor:
    """`y = H * T + x * C` from the pre-activations of H, T and, with three affine maps, C.

    Args:
        z: The pre-activations, concatenated along dimension `dim`.
        x: The carried tensor.
        affine_maps: 2 where C = 1 - T, 3 where C has its own part of z.
        dim: The dimension of blocks or feature maps, counted from the end.
        activation: The activation of the block state, "relu" or "tanh".
    """
    rows = _Rows(z, affine_maps, dim)
    z, x = rows.of(z, affine_maps), rows.of(x)
    y = torch.empty_like(x)
    rows.run(_kernels(affine_maps, activation)[0], z, x, y)
    return rows.back(y)


@torch.library.custom_op("verydeep::gate_backward", mutates_args=())
def gate_backward(
    dy: Tensor, z: Tensor, x: Tensor, affine_maps: int, dim: int, activation: str
) -> tuple[Tensor, Tensor]:
    """The gradients of z and x."""
    rows = _Rows(z, affine_maps, dim)
    dy, z, x = rows.of(dy), rows.of(z, affine_maps), rows.of(x)
    dz, dx = torch.empty_like(z), torch.empty_like(x)
    rows.run(_kernels(affine_maps, activation)[1], dy, z, x, dz, dx)
    return rows.back(dz), rows.back(dx)


@cache
def _kernels(affine_maps: int, activation: str) -> list["Function"]:
    from verydeep.kernels.gate._gate_loops import make_gate_backward, make_gate_forward
    from verydeep.kernels.runtime._compile import compile_kernels

    kernels = [make_gate_forward(affine_maps, activation), make_gate_backward(affine_maps, activation)]
    return compile_kernels(f"gate-{affine_maps}-{activation}", kernels)


class _Rows:
    """How tensors in the memory format of z divide into rows.

    A row is a contiguous range: all feature maps of an image, all channels of a position in channels-last format, or
    the blocks of one sample.
    """

    def __init__(self, z: Tensor, affine_maps: int, dim: int) -> None:
        self.dim, self.last = dim, _channels_last(z, dim)
        shape = list(z.movedim(dim, -1).shape if self.last else z.shape)
        self.place = -1 if self.last else dim
        self.channels, self.shape = z.shape[dim] // affine_maps, shape
        self.blocks = self.channels * (1 if self.last else prod(shape[len(shape) + dim + 1 :]))

    def of(self, tensor: Tensor, affine_maps: int = 1) -> Tensor:
        """A tensor as `(row, map, block)`; copied only if it has another memory format."""
        rows = tensor.movedim(self.dim, -1) if self.last else tensor
        return rows.contiguous().view(-1, affine_maps, self.blocks)

    def back(self, rows: Tensor) -> Tensor:
        """The inverse of `of`."""
        self.shape[self.place] = rows.shape[1] * self.channels
        tensor = rows.view(self.shape)
        return tensor.movedim(-1, self.dim) if self.last else tensor

    def run(self, kernel: "Function", *tensors: Tensor) -> None:
        """Call the kernel with addresses, on as many threads as torch uses if there is enough to do."""
        count, _, blocks = tensors[0].shape
        threads = max(1, min(torch.get_num_threads(), count, count * blocks // _SHARE))
        bounds = [count * i // threads for i in range(threads + 1)]

        def part(first: int, last: int) -> list[Call]:
            addresses = (t.data_ptr() + first * t.stride(0) * _NUMBER for t in tensors)
            return [(kernel, (*addresses, last - first, blocks))]

        run_together([part(*pair) for pair in pairwise(bounds)])


def _channels_last(z: Tensor, dim: int) -> bool:
    return not z.is_contiguous() and z.movedim(dim, -1).is_contiguous()


@highway_gate.register_fake
def _(z: Tensor, x: Tensor, affine_maps: int, dim: int, activation: str) -> Tensor:
    return _empty(z, x, dim)


@gate_backward.register_fake
def _(dy: Tensor, z: Tensor, x: Tensor, affine_maps: int, dim: int, activation: str) -> tuple[Tensor, Tensor]:
    return _empty(z, z, dim), _empty(z, x, dim)


def _empty(z: Tensor, like: Tensor, dim: int) -> Tensor:
    """A new tensor with the shape of `like` and the memory format of z."""
    if _channels_last(z, dim):
        return like.new_empty(like.movedim(dim, -1).shape).movedim(-1, dim)
    return like.new_empty(like.shape)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ANN401 - torch's interface
    z, x, *ctx.options = inputs
    ctx.save_for_backward(z, x)


def _backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
    z, x = ctx.saved_tensors
    if torch.is_grad_enabled():  # for second derivatives, which torch's operations have
        dz, dx = gradients(partial(_reference, ctx.options), (z, x), dy)
    else:
        dz, dx = gate_backward(dy, z, x, *ctx.options)
    return dz, dx, None, None, None


def _reference(options: tuple[Any, ...], z: Tensor, x: Tensor) -> Tensor:
    return gate_reference(z, x, *options)


def gradients(function: Callable[..., Tensor], inputs: tuple[Tensor, ...], dy: Tensor) -> tuple[Tensor, ...]:
    """Gradients of torch's operations that can be differentiated again, also with respect to dy."""
    needed = [value if value.requires_grad else value.detach().requires_grad_() for value in inputs]
    return torch.autograd.grad(function(*needed), needed, dy, create_graph=True)


highway_gate.register_autograd(_backward, setup_context=_setup)
