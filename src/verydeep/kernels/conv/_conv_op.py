"""Fused convolutional layers as torch operators, forward and backward."""

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep.kernels.conv._conv_call import ConvCall, ConvOptions, z_shape
from verydeep.kernels.gate._gate_op import gate_reference, gradients


def conv_reference(
    x: Tensor, weight: Tensor, bias: Tensor, padding: int, stride: int, kind: str, affine_maps: int
) -> Tensor:
    """What the operator computes, in torch's operations."""
    z = F.conv2d(x, weight, bias, stride, padding)
    if kind.startswith("highway"):
        return gate_reference(z, x, affine_maps, -3, kind.removeprefix("highway_"))
    if kind == "maxout":
        return torch.unflatten(z, 1, (-1, affine_maps)).amax(2)
    return torch.relu(z) if kind == "relu" else z


@torch.library.custom_op("verydeep::conv_layer", mutates_args=())
def conv_layer(
    x: Tensor, weight: Tensor, bias: Tensor, padding: int, stride: int, kind: str, affine_maps: int, keep: bool
) -> tuple[Tensor, Tensor]:
    """The output of a convolutional layer, and z if its backward pass needs it.

    Args:
        x: `(batch, channel, height, width)`; copied unless it is in channels-last format.
        weight: `(out, channel, side, side)`. In a highway layer these are the filters of H, of T and, with three affine
            maps, of C; with maxout, the pieces of a channel are adjacent.
        bias: `(out)`.
        padding: Zeros around the images.
        stride: The stride of the convolution.
        kind: What follows the convolution: "linear", "relu", "maxout", "highway_relu" or "highway_tanh".
        affine_maps: The number of affine maps: pieces of maxout, or H, T and an independent C of a highway layer.
        keep: Whether there will be a backward pass; otherwise z is empty.
    """
    x, options = _channels_last(x), ConvOptions(padding, stride, kind, affine_maps)
    y, z = _outputs(x, weight, options, keep)
    ConvCall(x.shape, weight, options).forward(x, bias.contiguous(), y, z if z.numel() else None)
    return y, z


@torch.library.custom_op("verydeep::conv_layer_backward", mutates_args=())
def conv_layer_backward(
    dy: Tensor,
    x: Tensor,
    kept: Tensor,
    weight: Tensor,
    padding: int,
    stride: int,
    kind: str,
    affine_maps: int,
    with_dx: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of x, weight and bias; that of x is empty unless it is asked for. `kept` is z, or y without it."""
    dy, x, kept = (_channels_last(images) for images in (dy, x, kept))  # hooks may have changed the memory format
    options = ConvOptions(padding, stride, kind, affine_maps)
    dx = torch.empty_like(x) if with_dx or options.epilogue.carries else None
    d_weight, d_bias = ConvCall(x.shape, weight, options).backward(dy, x, kept, dx)
    return (x.new_empty(0) if dx is None else dx), d_weight, d_bias


def _channels_last(images: Tensor) -> Tensor:
    """The images in channels-last format; for images of few pixels, torch's own test of the format is ambiguous."""
    return images.movedim(1, -1).contiguous().movedim(-1, 1)


def _outputs(x: Tensor, weight: Tensor, options: ConvOptions, keep: bool) -> tuple[Tensor, Tensor]:
    *pixels, outs = shape = z_shape(x.shape, weight.shape, options)
    y = x.new_empty(*pixels, outs // options.affine_maps).movedim(-1, 1)
    return y, x.new_empty(shape).movedim(-1, 1) if keep and options.epilogue.needs_z else x.new_empty(0)


@conv_layer.register_fake
def _(
    x: Tensor, weight: Tensor, bias: Tensor, padding: int, stride: int, kind: str, affine_maps: int, keep: bool
) -> tuple[Tensor, Tensor]:
    options = ConvOptions(padding, stride, kind, affine_maps)
    return _outputs(x, weight, options, keep)


@conv_layer_backward.register_fake
def _(
    dy: Tensor,
    x: Tensor,
    kept: Tensor,
    weight: Tensor,
    padding: int,
    stride: int,
    kind: str,
    affine_maps: int,
    with_dx: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    carries = ConvOptions(padding, stride, kind, affine_maps).epilogue.carries
    dx = torch.empty_like(_channels_last(x)) if with_dx or carries else x.new_empty(0)
    return dx, weight.new_empty(weight.shape), weight.new_empty(weight.shape[:1])


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:  # noqa: ANN401 - torch's interface
    x, weight, bias, *ctx.options, _keep = inputs
    y, z = output
    ctx.save_for_backward(x, weight, bias, z if ConvOptions(*ctx.options).epilogue.needs_z else y)
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, dy: Tensor | None, _dz: Tensor | None) -> tuple[Tensor | None, ...]:  # noqa: ANN401
    if dy is None:
        return (None,) * 8
    x, weight, bias, kept = ctx.saved_tensors
    if torch.is_grad_enabled():  # for second derivatives, which torch's operations have
        dx: Tensor | None
        dx, d_weight, d_bias = gradients(partial(_reference, ctx.options), (x, weight, bias), dy)
    else:
        with_dx: bool = ctx.needs_input_grad[0]
        grads = conv_layer_backward(dy, x, kept, weight, *ctx.options, with_dx)
        dx, d_weight, d_bias = grads
        dx = dx if with_dx else None
    return dx, d_weight, d_bias, *(None,) * 5


def _reference(options: tuple[Any, ...], x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return conv_reference(x, weight, bias, *options)


conv_layer.register_autograd(_backward, setup_context=_setup)
