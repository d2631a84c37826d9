"""What stacks of equal fully connected layers share, and the plain stack: the networks of Section 3.1.

One weight tensor and one bias tensor hold all layers, so an optimiser updates a thousand layers in one operation.
"""

from collections.abc import Collection, Sequence
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.nn._activations import Activation, activation_name, resolve_activation
from verydeep.nn._init import init_weight
from verydeep.nn._linear import check_width


class Stack(nn.Module):
    """`depth` layers of one width. A layer's affine maps (H, then T, then C) lie below each other in its matrix.

    Attributes:
        weight: `(layer, map * block, width)`.
        bias: `(layer, map * block)`.
    """

    def __init__(self, width: int, depth: int, maps: int, activation: str | Activation, init: str) -> None:
        super().__init__()
        if width < 1 or depth < 1:
            raise UserError(f"a stack needs a width and a depth of at least 1, got width {width} and depth {depth}")
        self.width, self.depth, self.maps, self.init = width, depth, maps, init
        self.activation = resolve_activation(activation)
        self.weight = nn.Parameter(torch.empty(depth, maps * width, width))
        self.bias = nn.Parameter(torch.empty(depth, maps * width))

    def reset_parameters(self) -> None:
        """Initial weights for all maps alike; biases are zero."""
        init_weight(self.weight, self.width, self.width, self.activation, self.init)
        nn.init.zeros_(self.bias)

    def _open_layers(self, x: Tensor, closed: Collection[int], first: int = 0) -> list[tuple[Tensor, Tensor] | None]:
        """Weight and bias of the layers from `first` on, None where one is closed."""
        check_width(self, x, self.width)
        wrong = sorted(layer for layer in closed if not 0 <= layer < self.depth)
        if wrong:
            raise UserError(f"cannot close layer {wrong[0]}: the layers are numbered 0 to {self.depth - 1}")
        if not 0 <= first <= self.depth:
            raise UserError(f"cannot start at layer {first}: the layers are numbered 0 to {self.depth - 1}")
        parameters = zip(self.weight.unbind(), self.bias.unbind(), strict=True)  # indexing: a quadratic backward pass
        return [None if layer in closed else pair for layer, pair in enumerate(parameters)][first:]

    def extra_repr(self) -> str:
        return f"width={self.width}, depth={self.depth}, activation={activation_name(self.activation)}"


class PlainStack(Stack):
    """`depth` plain layers `y = activation(W x + b)` (Equation 1).

    Args:
        width: Number of units of every layer.
        depth: Number of layers.
        activation: A name ("tanh", "relu", ...) or a callable.
        init: "auto", "glorot_normal", "glorot_uniform", "he_normal" or "he_uniform".
    """

    def __init__(self, width: int, depth: int, activation: str | Activation = "tanh", *, init: str = "auto") -> None:
        super().__init__(width, depth, 1, activation, init)
        self.reset_parameters()

    def forward(self, x: Tensor, closed: Collection[int] = (), first: int = 0) -> Tensor:
        """The output of the last layer for x, the input of layer `first`; closed layers copy their input."""
        for layer in self._open_layers(x, closed, first):
            if layer is not None:
                x = self.activation(F.linear(x, *layer))
        return x

    def to_layers(self) -> list[nn.Linear]:
        """The affine maps as single layers with equal weights; the activation follows each."""
        layers = [nn.Linear(self.width, self.width, device="meta") for _ in range(self.depth)]
        for layer, weight, bias in zip(layers, self.weight, self.bias, strict=True):
            layer.weight, layer.bias = copy_parameter(weight), copy_parameter(bias)
        return layers

    @classmethod
    def from_layers(cls, layers: Sequence[nn.Linear], activation: str | Activation = "tanh") -> Self:
        """A stack with the weights of single layers, all of one width."""
        width = common_width([(layer.in_features, layer.out_features) for layer in layers])
        stack = cls(width, len(layers), activation)
        stack.weight = copy_parameter(torch.stack([layer.weight for layer in layers]))
        stack.bias = copy_parameter(torch.stack([layer.bias for layer in layers]))
        return stack


def copy_parameter(values: Tensor) -> nn.Parameter:
    """A parameter of its own with these values."""
    return nn.Parameter(values.detach().clone())


def common_width(sizes: list[tuple[int, int]]) -> int:
    """The width that all layers have on both sides."""
    widths = {width for pair in sizes for width in pair}
    if len(widths) != 1:
        raise UserError(f"a stack needs at least one layer, all of one width; got widths {sorted(widths) or 'of none'}")
    return widths.pop()
