"""The stack of plain fully connected layers: the networks that Section 3.1 compares with highway networks."""

from collections.abc import Sequence
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from verydeep.kernels import Backend
from verydeep.nn._activations import Activation, pieces_of, resolve_activation
from verydeep.nn._stack import FeedForwardStack, common_width, copy_parameter


class PlainStack(FeedForwardStack):
    """`depth` plain fully connected layers `y = activation(W x + b)` (Equation 1) in one module.

    Args:
        width: Number of units per layer.
        depth: Number of layers.
        activation: A name ("tanh", "relu", "lwta", "maxout", ...) or a callable.
        init: The initial weights, as for `HighwayStack`.
        backend: "auto", "fused" (raises an error where the kernels cannot run) or "reference".
        device: Device of the parameters.
        dtype: Data type of the parameters.

    Example:
        >>> import torch
        >>> from verydeep.nn import PlainStack
        >>> PlainStack(width=8, depth=10, activation="relu")(torch.randn(5, 8)).shape
        torch.Size([5, 8])
    """

    def __init__(
        self,
        width: int,
        depth: int,
        activation: str | Activation = "tanh",
        *,
        init: str = "auto",
        backend: Backend = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(width, depth, 0, activation, init, backend, device, dtype)
        self.reset_parameters()

    @property
    def highway_depth(self) -> int:
        """Plain layers have no gates to close or trace."""
        return 0

    def _layer(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Equation 1: `y = activation(W x + b)`."""
        return self.activation(F.linear(x, weight, bias))

    def to_layers(self) -> list[nn.Linear]:
        """The affine maps as single layers with copies of the weights; the activation is applied after each."""
        layers = [nn.Linear(self.width, self.pieces * self.width, device="meta") for _ in range(self.depth)]
        for layer, weight, bias in zip(layers, self.weight, self.bias, strict=True):
            layer.weight, layer.bias = copy_parameter(weight), copy_parameter(bias)
        return layers

    @classmethod
    def from_layers(cls, layers: Sequence[nn.Linear], activation: str | Activation = "tanh") -> Self:
        """Build a stack from single layers of the same width, whose weights are copied."""
        pieces = pieces_of(resolve_activation(activation))
        width = common_width([(layer.in_features, layer.out_features // pieces) for layer in layers])
        stack = cls(width, len(layers), activation)
        stack.weight = copy_parameter(torch.stack([layer.weight for layer in layers]))
        stack.bias = copy_parameter(torch.stack([layer.bias for layer in layers]))
        return stack
