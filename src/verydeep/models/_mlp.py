"""The fully connected networks of Section 3.1: a plain first layer, a stack of equal layers, softmax."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.models._network import Network
from verydeep.nn import HighwayStack, PlainStack, init_weight, suggest_gate_bias
from verydeep.nn._fused_stack import is_watched


@dataclass(frozen=True)
class MLPConfig:
    """A fully connected network.

    Attributes:
        kind: Highway or plain layers after the first.
        depth: Hidden layers, the first plain one included.
        width: Blocks (or units) of every hidden layer.
        input_shape: Shape of a sample, which is flattened.
        classes: Number of outputs.
        activation: Of every hidden layer.
        gate_bias: Initial bias of the transform gates; None takes what `suggest_gate_bias` says for this depth.
        carry: Of highway layers, coupled or with their own carry gates.
    """

    kind: Literal["highway", "plain"]
    depth: int = 50
    width: int = 50
    input_shape: tuple[int, ...] = (1, 28, 28)
    classes: int = 10
    activation: str = "tanh"
    gate_bias: float | None = None
    carry: Literal["coupled", "independent"] = "coupled"

    def __post_init__(self) -> None:
        if self.depth < 2:
            raise UserError(f"depth must be at least 2 (a plain layer, then {self.kind} layers), got {self.depth}")
        if min(self.width, self.classes, *self.input_shape, 1) < 1 or not self.input_shape:
            raise UserError(
                "width, classes and every part of input_shape must be at least 1, "
                f"got {self.width}, {self.classes} and {self.input_shape}"
            )


class MLP(Network):
    """Built from an `MLPConfig`."""

    classifier: nn.Linear

    def __init__(self, config: MLPConfig) -> None:
        super().__init__()
        self.config = config
        self.input = nn.Linear(math.prod(config.input_shape), config.width)
        self.stack: HighwayStack | PlainStack
        if config.kind == "highway":
            bias = suggest_gate_bias(config.depth, "linear") if config.gate_bias is None else config.gate_bias
            self.stack = HighwayStack(config.width, config.depth - 1, config.activation, bias, config.carry)
        else:
            self.stack = PlainStack(config.width, config.depth - 1, config.activation)
        self.classifier = nn.Linear(config.width, config.classes)
        for layer in (self.input, self.classifier):
            init_weight(layer.weight, layer.in_features, layer.out_features, self.stack.activation)
            nn.init.zeros_(layer.bias)

    @property
    def input_shape(self) -> tuple[int, ...]:
        return self.config.input_shape  # type: ignore[no-any-return]

    @property
    def highway_depth(self) -> int:
        return self.stack.depth if isinstance(self.stack, HighwayStack) else 0

    def checkpoint_activations(self) -> None:
        self.stack.recompute = True

    def forward(self, x: Tensor, closed: Collection[int] = ()) -> Tensor:
        self._check(x, closed)
        return self.stack.between(self.input, self.classifier, x.flatten(1), closed)

    def backward_cross_entropy(self, x: Tensor, y: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        """Backpropagate `scale` times the sum of a batch's cross-entropies for classes y: a training step's core.

        Returns:
            The sum and the logits.
        """
        self._check(x, ())
        found = None
        if type(self) is MLP and not is_watched(self):
            found = self.stack.descend(self.input, self.classifier, x.flatten(1), y, scale)
        if found is None:
            logits = self(x)
            loss = F.cross_entropy(logits.float(), y, reduction="sum")
            loss.backward(loss.new_tensor(scale))
            found = loss.detach(), logits.detach()
        return found
