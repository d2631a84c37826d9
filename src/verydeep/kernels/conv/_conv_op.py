"""The fused convolutional highway layer as torch operators, forward and backward."""

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep.kernels.conv._conv_call import ConvCall
from verydeep.kernels.gate._gate_op import gate_reference, gradients


def conv_reference(x: Tensor, weight: Tensor, bias: Tensor, activation: str) -> Tensor:
    """What the operator computes, in torch's operations."""
    return gate_reference(F.conv2d(x, weight, bias, 1, 1), x, weight.shape[0] // x.shape[1], -3, activation)


@torch.library.custom_op("verydeep::highway_conv", mutates_args=())
def highway_conv(x: Tensor, weight: Tensor, bias: Tensor, activation: str, keep: bool) -> tuple[Tensor, Tensor]:
    """The output of a convolutional highway layer, and z for its backward pass.

    Args:
        x: `(batch, channel, height, width)`; copied unless it is in channels-last format.
        weight: `(map * channel, channel, 3, 3)`, the filters of H, of T and, with three affine maps, of C.
        bias: `(map * channel)`.
        activation: The activation of the block state, "relu" or "tanh".
        keep: Whether there will be a backward pass; otherwise z is empty.
    """
    x = _channels_last(x)
    y, z = torch.empty_like(x), _z(x, weight, keep)
    ConvCall(x.shape, weight, activation).forward(x, bias.contiguous(), y, z if keep else None)
    return y, z


@torch.library.custom_op("verydeep::highway_conv_backward", mutates_args=())
def highway_conv_backward(
    dy: Tensor, x: Tensor, z: Tensor, weight: Tensor, activation: str
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of x, weight and bias."""
    dy, x, z = _channels_last(dy), _channels_last(x), _channels_last(z)  # hooks may have changed the memory format of z
    dx = torch.empty_like(x)
    return dx, *ConvCall(x.shape, weight, activation).backward(dy, x, z, dx)


def _channels_last(images: Tensor) -> Tensor:
    """The images in channels-last format; for images of few pixels, torch's own test of the format is ambiguous."""
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


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:  # noqa: ANN401 - torch's interface
    x, weight, bias, ctx.activation, _ = inputs
    ctx.save_for_backward(x, weight, bias, output[1])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, dy: Tensor | None, _dz: Tensor | None) -> tuple[Tensor | None, ...]:  # noqa: ANN401
    if dy is None:
        return (None,) * 5
    x, weight, bias, z = ctx.saved_tensors
    if torch.is_grad_enabled():  # for second derivatives, which torch's operations have
        grads = gradients(partial(conv_reference, activation=ctx.activation), (x, weight, bias), dy)
    else:
        grads = highway_conv_backward(dy, x, z, weight, ctx.activation)
    return *grads, None, None


highway_conv.register_autograd(_backward, setup_context=_setup)
