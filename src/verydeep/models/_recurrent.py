"""A recurrent highway network (Zilly et al. 2017) that reads a sample as a sequence and classifies it at the end."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.models._network import Network
from verydeep.nn import RecurrentHighway, Trace, init_weight


@dataclass(frozen=True)
class RecurrentConfig:
    """A recurrent highway network.

    An image is read row by row, with the pixels of all channels of a row as features; a matrix `(time, feature)` row by
    row; and a flat sample value by value.

    Attributes:
        depth: Number of highway layers that the state passes per time step.
        width: Number of blocks, the size of the state.
        input_shape: Shape of a sample.
        classes: Number of outputs.
        activation: The activation of the block states.
        gate_bias: Initial bias of the transform gates.
        carry: The carry gates, coupled or independent.
        init: The initial weights, as for `HighwayStack`.

    Example:
        >>> from verydeep.models import RecurrentConfig, build
        >>> model = build(RecurrentConfig(depth=3, width=16, input_shape=(1, 8, 8)))
        >>> model.steps, model.features, model.highway_depth
        (8, 8, 3)
    """

    depth: int = 5
    width: int = 100
    input_shape: tuple[int, ...] = (1, 28, 28)
    classes: int = 10
    activation: str = "tanh"
    gate_bias: float = -2.0
    carry: Literal["coupled", "independent"] = "coupled"
    init: str = "auto"

    def __post_init__(self) -> None:
        if min(self.depth, self.width, self.classes, *self.input_shape, 1) < 1 or not 1 <= len(self.input_shape) <= 3:
            raise UserError(
                "depth, width and classes must be at least 1, and input_shape must be (channels, height, width), "
                f"(time, feature) or (time,); got {self.depth}, {self.width}, {self.classes} and {self.input_shape}"
            )


class RecurrentNet(Network):
    """A recurrent highway layer over the time steps of a sample, and a linear classifier of its last state.

    Args:
        config: The description of the network.
        device: Device of the parameters.
        dtype: Data type of the parameters.

    Example:
        >>> import torch
        >>> from verydeep.models import RecurrentConfig, RecurrentNet
        >>> model = RecurrentNet(RecurrentConfig(depth=2, width=8, input_shape=(3, 4, 5)))
        >>> model(torch.randn(2, 3, 4, 5), closed={1}).shape
        torch.Size([2, 10])
        >>> model.trace(torch.randn(2, 3, 4, 5))[0].t.shape  # (batch, time, block) of each layer
        torch.Size([2, 4, 8])
    """

    classifier: nn.Linear

    def __init__(
        self, config: RecurrentConfig, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.config = config
        self.recurrent = RecurrentHighway(
            self.features,
            config.width,
            config.depth,
            config.activation,
            config.gate_bias,
            config.carry,
            batch_first=True,
            init=config.init,
            device=device,
            dtype=dtype,
        )
        self.classifier = nn.Linear(config.width, config.classes, device=device, dtype=dtype)
        self._reset_classifier()

    @property
    def steps(self) -> int:
        """The number of time steps of a sample: the rows of an image, or the values of a flat one."""
        shape = self.input_shape
        return shape[1] if len(shape) == 3 else shape[0]

    @property
    def features(self) -> int:
        """The number of values per time step."""
        return math.prod(self.input_shape) // self.steps

    @property
    def highway_depth(self) -> int:
        return self.config.depth  # type: ignore[no-any-return]

    def reset_parameters(self) -> None:
        self.recurrent.reset_parameters()
        self._reset_classifier()

    def _reset_classifier(self) -> None:
        layer = self.classifier
        init_weight(layer.weight, layer.in_features, layer.out_features, self.config.activation, self.config.init)
        nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor, closed: Collection[int] = ()) -> Tensor:
        closed = self._check(x, closed)
        _, state = self.recurrent(self._sequence(x), closed=closed)
        return self.classifier(state[0])  # type: ignore[no-any-return]

    @torch.no_grad()
    def trace(self, x: Tensor, closed: Collection[int] = ()) -> tuple[Trace, ...]:
        closed = self._check(x, closed)
        layers = self.recurrent.trace(self._sequence(x), closed=closed)
        return tuple(Trace(*values) for values in zip(*layers, strict=True))

    def _sequence(self, x: Tensor) -> Tensor:
        """The samples as `(batch, time, feature)`."""
        rows = x.transpose(1, 2) if x.dim() == 4 else x
        return rows.reshape(len(x), self.steps, self.features)
