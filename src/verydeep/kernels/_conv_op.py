"""The fused convolutional highway layer as a torch operator, forward and backward."""

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep.kernels._conv_run import Layer
from verydeep.kernels._gate_op import gate_reference, gradients


def conv_suits(x: Tensor) -> bool:
    """Whether the operator takes these images; kernels compute whole registers of channels."""
    from verydeep.kernels._ir import LANES

    return x.dim() == 4 and x.shape[1] % LANES == 0


def conv_reference(x: Tensor, weight: Tensor, bias: Tensor, activation: str) -> Tensor:
    """What the operator computes, in plain torch."""
    return gate_reference(F.conv2d(x, weight, bias, 1, 1), x, weight.shape[0] // x.shape[1], -3, activation)


@torch.library.custom_op("verydeep::highway_conv", mutates_args=())
def highway_conv(x: Tensor, weight: Tensor, bias: Tensor, activation: str, keep: bool) -> tuple[Tensor, Tensor]:
    """The output of a convolutional highway layer, and z for its backward pass.

    Args:
        x: `(batch, channel, height, width)`; copied unless the channels come last in memory.
        weight: `(map * channel, channel, 3, 3)`, the filters of H, of T and, with three maps, of C.
        bias: `(map * channel)`.
        activation: Of the block state, "relu" or "tanh".
        keep: Whether there will be a backward pass; otherwise z is empty.
    """
    x = _channels_last(x)
    y, z = torch.empty_like(x), _z(x, weight, keep)
    Layer(x.shape, weight, activation).forward(x, bias.contiguous(), y, z if keep else None)
    return y, z


@torch.library.custom_op("verydeep::highway_conv_backward", mutates_args=())
def highway_conv_backward(
    dy: Tensor, x: Tensor, z: Tensor, weight: Tensor, activation: str
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of x, weight and bias."""
    dy, x, z = _channels_last(dy), _channels_last(x), _channels_last(z)  # hooks may keep z in another order
    dx = torch.empty_like(x)
    return dx, *Layer(x.shape, weight, activation).backward(dy, x, z, dx)


def _channels_last(images: Tensor) -> Tensor:
    """In the order of memory that kernels take; torch finds tensors of few pixels to be in any order."""
    return images.movedim(1, -1).contiguous().movedim(-1, 1)


def _z(x: Tensor, weight: Tensor, keep: bool) -> Tensor:
    batch, _, height, width = x.shape
    return x.new_empty(batch, height, width, weight.shape[0]).movedim(-1, 1) if keep else x.new_empty(0)


@highway_conv.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, activation: str, keep: bool) -> tuple[Tensor, Tensor]:
    return torch.empty_like(_channels_last(x)), _z(x, weight, keep)


@highway_conv_backward.register_fake
def _(dy: Tensor, x: Tensor, z: Tensor, weight: Tensor, activation: str) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(_channels_last(x)), weight.new_empty(weight.shape), weight.new_empty(weight.shape[:1])


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:  # noqa: ANN401 - torch's interface
    x, weight, bias, ctx.activation, _ = inputs
    ctx.save_for_backward(x, weight, bias, output[1])
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, dy: Tensor | None, _dz: Tensor | None) -> tuple[Tensor | None, ...]:  # noqa: ANN401
    if dy is None:
        return (None,) * 5
    x, weight, bias, z = ctx.saved_tensors
    if torch.is_grad_enabled():  # someone wants second derivatives: plain torch has them
        found = gradients(partial(conv_reference, activation=ctx.activation), (x, weight, bias), dy)
    else:
        found = highway_conv_backward(dy, x, z, weight, ctx.activation)
    return *found, None, None


highway_conv.register_autograd(_differentiate, setup_context=_keep)
