"""Convolutional highway layers (Section 2.1 of the paper), for sequences, images and volumes."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from verydeep import kernels
from verydeep.errors import UserError
from verydeep.kernels import Backend
from verydeep.nn._activations import Activation, activation_name
from verydeep.nn._affine import AffineHighway, Carry, bias_of
from verydeep.nn.functional import resize


class _HighwayConv(AffineHighway):
    """What convolutional highway layers of one to three dimensions share.

    Args:
        channels: Number of feature maps of x.
        kernel_size: Size of the kernel, an odd number; zero padding keeps the size of the maps.
        activation: The activation of the block state: a name ("relu", "tanh", ...) or a callable.
        gate_bias: Initial bias of the transform gates; see `suggest_gate_bias`.
        carry: "coupled" (C = 1 - T) or "independent" (C has its own weights).
        out_channels: Number of feature maps of the output if it differs; the carried x is then resized.
        stride: Stride of the convolutions; with more than 1, the carried x is sub-sampled.
        gate_activation: The activation of the gates, with values between 0 and 1.
        carry_bias: Initial bias of independent carry gates; -gate_bias by default.
        init: The initial weights, as for `HighwayStack`.
        backend: "auto", "fused" (raises an error where the kernels cannot run) or "reference".
        device: Device of the parameters.
        dtype: Data type of the parameters.
    """

    map_type: ClassVar[type[nn.Conv1d | nn.Conv2d | nn.Conv3d]]
    _function: ClassVar[Callable[..., Tensor]]

    def __init__(
        self,
        channels: int,
        kernel_size: int = 3,
        activation: str | Activation = "relu",
        gate_bias: float = -1.0,
        carry: Carry = "coupled",
        *,
        out_channels: int | None = None,
        stride: int = 1,
        gate_activation: str | Activation = "sigmoid",
        carry_bias: float | None = None,
        init: str = "auto",
        backend: Backend = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if isinstance(activation, int):
            raise UserError(
                f"{type(self).__name__}({channels}, {kernel_size}, {activation}): a highway layer keeps the number of "
                f"channels, so it takes only one; write {type(self).__name__}({channels}, {activation}, "
                f"out_channels={kernel_size}), or put a plain convolution in front"
            )
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise UserError(f"kernel_size must be odd, so that the output has the size of the input; got {kernel_size}")
        out_channels = channels if out_channels is None else out_channels
        if min(channels, out_channels, stride) < 1:
            raise UserError(
                f"channels, out_channels and stride must be at least 1, got {channels}, {out_channels} and {stride}"
            )
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        make = partial(self.map_type, channels, out_channels, kernel_size, stride, kernel_size // 2, **factory)
        super().__init__(make, activation, gate_activation, gate_bias, carry, carry_bias, init, backend)
        self.channels, self.out_channels = channels, out_channels
        self.kernel_size, self.stride = kernel_size, stride

    def x_hat(self, x: Tensor) -> Tensor:
        if x.dim() not in (-self.block_dim, 1 - self.block_dim) or x.shape[self.block_dim] != self.channels:
            positions = ", ".join(["depth", "height", "width"][self.block_dim + 1 :])
            raise UserError(
                f"{type(self).__name__} of {self.channels} channels got x of shape {tuple(x.shape)}: it must be "
                f"(batch, {self.channels}, {positions}); a plain convolution in front can change the channels"
            )
        return resize(x, self.out_channels, self.block_dim, self.stride)

    def _affine(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return type(self)._function(x, weight, bias, self.stride, self.kernel_size // 2)

    def extra_repr(self) -> str:
        changed = f"out_channels={self.out_channels}, stride={self.stride}, "
        return f"{self.channels}, kernel_size={self.kernel_size}, {changed}{self._describe()}"


def _documented(data: str, shape: str, dimensions: str, example: str) -> str:
    """The docstring of one of the three layers; they differ only in the number of dimensions."""
    arguments = inspect.cleandoc(_HighwayConv.__doc__ or "").partition("Args:")[2]
    return f"""A convolutional highway layer for {data}: `y = H(x) * T(x) + x * (1 - T(x))`.

H and T are convolutions with the same kernel size; H is followed by the activation and T by a sigmoid. x has
the shape `{shape}`, and the layer keeps it. To change the number of channels or the size of the
maps, put a plain layer in front, or give `out_channels` or `stride`.

Args:{arguments}

Example:
    >>> import torch
    >>> from verydeep.nn import HighwayConv{dimensions}
    >>> layer = HighwayConv{dimensions}(16, kernel_size=3)
    >>> layer(torch.randn({example})).shape
    torch.Size([{example}])
"""


class HighwayConv1d(_HighwayConv):
    __doc__ = _documented("sequences", "(batch, channels, length)", "1d", "2, 16, 50")
    block_dim = -2
    map_type = nn.Conv1d
    _function = F.conv1d


class HighwayConv2d(_HighwayConv):
    __doc__ = _documented("images", "(batch, channels, height, width)", "2d", "2, 16, 8, 8")
    block_dim = -3
    map_type = nn.Conv2d
    _function = F.conv2d

    def _has_fused_maps(self, x: Tensor, x_hat: Tensor) -> bool:
        return kernels.can_run_conv(self.kernel_size, x, x_hat)

    def _fused(self, x: Tensor, x_hat: Tensor) -> Tensor:
        """The whole layer in one operation if there is a kernel for its shape.

        Rounding errors are a few times those of torch's convolution, and an infinity spreads over its 6x6
        neighbourhood.
        """
        if not self._has_fused_maps(x, x_hat):
            return super()._fused(x, x_hat)
        maps = self.maps()
        kind = f"highway_{activation_name(self.activation)}"
        options = kernels.ConvOptions(self.kernel_size // 2, 1, kind, len(maps))
        return kernels.conv_layer(x, [one.weight for one in maps], [bias_of(one) for one in maps], options)


class HighwayConv3d(_HighwayConv):
    __doc__ = _documented("volumes", "(batch, channels, depth, height, width)", "3d", "2, 16, 4, 4, 4")
    block_dim = -4
    map_type = nn.Conv3d
    _function = F.conv3d
