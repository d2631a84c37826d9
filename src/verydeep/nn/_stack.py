"""What stacks of equal fully connected layers share.

One weight tensor and one bias tensor hold all layers, so an optimiser updates a thousand layers in one operation.
"""

from collections.abc import Collection

import torch
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

    def _check(self, x: Tensor, closed: Collection[int], first: int = 0) -> None:
        check_width(self, x, self.width)
        self._check_closed(closed)
        if not 0 <= first <= self.depth:
            raise UserError(f"cannot start at layer {first}: the layers are numbered 0 to {self.depth - 1}")

    def _check_closed(self, closed: Collection[int]) -> None:
        wrong = sorted(layer for layer in closed if not 0 <= layer < self.depth) if closed else ()
        if wrong:
            raise UserError(f"cannot close layer {wrong[0]}: the layers are numbered 0 to {self.depth - 1}")

    def extra_repr(self) -> str:
        return f"width={self.width}, depth={self.depth}, activation={activation_name(self.activation)}"


def copy_parameter(values: Tensor) -> nn.Parameter:
    """A parameter of its own with these values."""
    return nn.Parameter(values.detach().clone())


def common_width(sizes: list[tuple[int, int]]) -> int:
    """The width that all layers have on both sides."""
    widths = {width for pair in sizes for width in pair}
    if len(widths) != 1:
        raise UserError(f"a stack needs at least one layer, all of one width; got widths {sorted(widths) or 'of none'}")
    return widths.pop()
