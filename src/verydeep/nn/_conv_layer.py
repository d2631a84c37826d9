"""A plain convolution together with the rectifier or maxout that follows it."""

import torch
from torch import Tensor, nn

from verydeep import kernels
from verydeep.kernels import Backend
from verydeep.nn._maxout import Maxout


def run_conv(conv: nn.Module, activation: nn.Module, x: Tensor, backend: Backend = "auto") -> Tensor:
    """`activation(conv(x))`, in one operation if there is a kernel for it.

    Rounding errors of 3x3 and 5x5 convolutions are a few times those of torch's, and an infinity spreads over its 6x6
    neighbourhood. Modules that were replaced or have hooks are called as usual.

    Args:
        conv: An `nn.Conv2d`.
        activation: An `nn.ReLU` or a `Maxout` over feature maps.
        x: `(batch, channel, height, width)`.
        backend: "auto", "fused" (raises an error where the kernels cannot run) or "reference".
    """
    kind = activation_kind(activation)
    pieces = activation.pieces if isinstance(activation, Maxout) else 1
    if kind is None or kernels.has_hooks(conv, activation) or not kernels.can_run_plain_conv(backend, conv, pieces, x):
        if kernels.prefers_channels_last(backend, x):
            x = x.contiguous(memory_format=torch.channels_last)  # the layers after this one keep it
        y: Tensor = activation(conv(x))
        return y
    assert isinstance(conv, nn.Conv2d)
    assert conv.bias is not None
    assert not isinstance(conv.padding, str)
    options = kernels.ConvOptions(conv.padding[0], conv.stride[0], kind, pieces)
    return kernels.conv_layer(x, [conv.weight], [conv.bias], options)


def activation_kind(activation: nn.Module | None) -> str | None:
    """The kernels' name of an activation; None if they have none."""
    if type(activation) is Maxout and activation.dim == 1:
        return "maxout"
    return "relu" if type(activation) is nn.ReLU else None
