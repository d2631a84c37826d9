"""The stack of fully connected residual layers: fixed skip connections, to compare gates with at equal depth."""

import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep.kernels import Backend
from verydeep.nn._activations import Activation, activation_name
from verydeep.nn._stack import FeedForwardStack


class ResidualStack(FeedForwardStack):
    """`depth` fully connected residual layers `y = x + H(x)`, `H(x) = activation(W x + b)`, in one module.

    It is a highway stack without gates, whose T and C are 1. The initial weights are divided by the depth: all layers
    together then add at most about as much to x as one layer would, as highway layers do that start nearly closed.

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
        >>> from verydeep.nn import ResidualStack
        >>> ResidualStack(width=8, depth=10, activation="relu")(torch.randn(5, 8)).shape
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

    def reset_parameters(self) -> None:
        """Reset the weights by `init`, divided by the depth, and the biases to 0."""
        super().reset_parameters()
        with torch.no_grad():
            self.weight.div_(self.depth)

    @property
    def highway_depth(self) -> int:
        """Residual layers have no gates to trace."""
        return 0

    @property
    def closable_depth(self) -> int:
        """A closed residual layer copies its input."""
        return self.depth

    @property
    def formula(self) -> str:
        return f"residual-{activation_name(self.activation)}"

    def _layer(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """`y = x + activation(W x + b)`."""
        return x + self.activation(F.linear(x, weight, bias))
