"""Fused convolutional layers as an operation of torch, forward and backward."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep.kernels.conv._conv_call import ConvCall, ConvOptions, conv_call
from verydeep.kernels.gate._gate_op import gate_reference, gradients


def conv_reference(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], options: ConvOptions) -> Tensor:
    """What the operation computes, in torch's operations."""
    padding, stride, kind, affine_maps = options
    z = F.conv2d(x, torch.cat(list(weights)), torch.cat(list(biases)), stride, padding)
    if kind.startswith("highway"):
        return gate_reference(z, x, affine_maps, -3, kind.removeprefix("highway_"))
    if kind == "maxout":
        return torch.unflatten(z, 1, (-1, affine_maps)).amax(2)
    return torch.relu(z) if kind == "relu" else z


def conv_layer(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], options: ConvOptions) -> Tensor:
    """The output of a convolutional layer. For the backward pass it keeps z, or y where that is enough.

    Args:
        x: `(batch, channel, height, width)`; copied unless it is in channels-last format.
        weights: `(out, channel, side, side)`: the filters of H, of T and, with three affine maps, of C in a highway
            layer, otherwise of a single convolution; with maxout, the pieces of a channel are adjacent.
        biases: `(out)` for each of the weights.
        options: What is fixed about the layer besides the sizes of its tensors.
    """
    tensors = x, *weights, *biases
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        y: Tensor = _ConvLayer.apply(options, *tensors)  # type: ignore[no-untyped-call]
        return y
    return _forward(options, tensors, keep=False)[0]


class _ConvLayer(torch.autograd.Function):
    """The layer with its derivative. Operators of `torch.library` take several times as long to call."""

    @staticmethod
    def forward(ctx: Any, options: ConvOptions, *tensors: Tensor) -> Tensor:  # noqa: ANN401 - torch's interface
        y, z = _forward(options, tensors, keep=True)
        ctx.options = options
        ctx.save_for_backward(y if z is None else z, *tensors)
        ctx.set_materialize_grads(False)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor | None) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        kept, *tensors = ctx.saved_tensors
        if dy is None:
            return (None,) * (1 + len(tensors))
        if torch.is_grad_enabled():  # for second derivatives, which torch's operations have
            return None, *gradients(partial(_reference, ctx.options), tuple(tensors), dy)
        return None, *_backward(ctx.options, dy, kept, tensors, ctx.needs_input_grad[1])


def _forward(options: ConvOptions, tensors: Sequence[Tensor], keep: bool) -> tuple[Tensor, Tensor | None]:
    """The output y, and z if the backward pass needs it."""
    x, parameters = _channels_last(tensors[0].detach()), _contiguous(tensors[1:])
    count = len(parameters) // 2
    call = _call(x, parameters[:count], options)
    y = x.new_empty(call.y_shape).movedim(-1, 1)
    z = x.new_empty(call.z_shape).movedim(-1, 1) if keep and call.epilogue.needs_z else None
    call.forward(x, parameters[:count], parameters[count:], y, z)
    return y, z


def _backward(
    options: ConvOptions, dy: Tensor, kept: Tensor, tensors: Sequence[Tensor], with_dx: bool
) -> tuple[Tensor | None, ...]:
    """The gradients of x, the weights and the biases."""
    dy, x, kept = (_channels_last(images) for images in (dy, tensors[0], kept))  # hooks may have changed the format
    parameters = _contiguous(tensors[1:])
    count = len(parameters) // 2
    call = _call(x, parameters[:count], options)
    d_parameters = [torch.empty_like(parameter) for parameter in parameters]
    dx = torch.empty_like(x) if with_dx or call.epilogue.carries else None
    call.backward(dy, x, kept, parameters[:count], dx, d_parameters[:count], d_parameters[count:])
    return dx if with_dx else None, *d_parameters


def _call(x: Tensor, weights: Sequence[Tensor], options: ConvOptions) -> ConvCall:
    outs, taps = sum(weight.shape[0] for weight in weights), weights[0].shape[2]
    return conv_call(tuple(x.shape), outs, taps, options, torch.get_num_threads())


def _channels_last(images: Tensor) -> Tensor:
    """The images in channels-last format."""
    if images.is_contiguous(memory_format=torch.channels_last):
        return images
    return images.movedim(1, -1).contiguous().movedim(-1, 1)


def _contiguous(parameters: Sequence[Tensor]) -> list[Tensor]:
    return [parameter.detach().contiguous() for parameter in parameters]


def _reference(options: ConvOptions, *tensors: Tensor) -> Tensor:
    count = len(tensors) // 2
    return conv_reference(tensors[0], tensors[1 : 1 + count], tensors[1 + count :], options)
