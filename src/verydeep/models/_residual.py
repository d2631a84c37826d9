"""The 110-layer networks of Srivastava 2025: a residual (He et al. 2015) and a highway network, same layout."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.models._network import Network, run_to_layers, trace_layers
from verydeep.nn import Highway, Trace, run_steps
from verydeep.nn.functional import resize


@dataclass(frozen=True)
class ResidualConfig:
    """A stem, three stages of blocks of two 3x3 convolutions, global average pooling, a linear classifier.

    Attributes:
        kind: How a block is combined with its input: by a transform gate ("highway") or by a sum ("residual").
        blocks: Number of blocks per stage, one for all stages or one for each.
        stem: Number of feature maps of the first convolution.
        widths: Numbers of feature maps of the stages.
        input_shape: `(channels, height, width)`.
        classes: Number of outputs.
        gate_bias: Initial bias of the batch normalisation at the end of each transform gate.
        zeros: Where a residual network adds maps of zeros to x when the width grows: after the others ("after"), or
            half of them before and half after ("around").

    Example:
        >>> from verydeep.models import ResidualConfig, build
        >>> model = build(ResidualConfig("highway", blocks=3, widths=(8, 16, 32), classes=100))
        >>> model.config.depth, model.highway_depth
        (19, 9)
    """

    kind: Literal["highway", "residual"]
    blocks: int | tuple[int, ...] = 18
    stem: int = 16
    widths: tuple[int, ...] = (16, 32, 64)
    input_shape: tuple[int, ...] = (3, 32, 32)
    classes: int = 10
    gate_bias: float = -6.0
    zeros: Literal["after", "around"] = "after"

    def __post_init__(self) -> None:
        least = self.blocks if isinstance(self.blocks, int) else 1  # pruning may have removed all blocks of a stage
        if min(least, self.stem, self.classes, *self.widths, *self.input_shape) < 1 or len(self.input_shape) != 3:
            raise UserError(
                "sizes of a residual network must be at least 1, and input_shape must be (channels, height, width)"
            )
        if len(self.stages) != len(self.widths) or min(self.stages) < 0:
            raise UserError(f"blocks must have a number for each of the {len(self.widths)} stages, got {self.blocks}")

    @property
    def stages(self) -> tuple[int, ...]:
        """The number of blocks of each stage."""
        return (self.blocks,) * len(self.widths) if isinstance(self.blocks, int) else self.blocks

    @property
    def depth(self) -> int:
        """The number of hidden layers, without the projections of x."""
        return 1 + 2 * sum(self.stages)


class ResidualNet(Network):
    """A convolutional network of residual or highway blocks, built from a `ResidualConfig`.

    Args:
        config: The description of the network.
        device: Device of the parameters.
        dtype: Data type of the parameters.

    Example:
        >>> import torch
        >>> from verydeep.models import ResidualConfig, ResidualNet
        >>> model = ResidualNet(ResidualConfig("highway", blocks=1, stem=4, widths=(4, 8, 8), input_shape=(3, 8, 8)))
        >>> model(torch.randn(2, 3, 8, 8), closed={0, 2}).shape
        torch.Size([2, 10])
    """

    classifier: nn.Linear

    def __init__(
        self, config: ResidualConfig, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.config = config
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.recompute = False
        self.stem = nn.Sequential(*_conv(config.input_shape[0], config.stem, 1, factory), nn.ReLU())
        self.blocks = nn.ModuleList()
        channels = config.stem
        for stage, width in enumerate(config.widths):
            for number in range(config.stages[stage]):
                stride = 2 if stage > 0 and number == 0 else 1
                self.blocks.append(_block(config, channels, width, stride, factory))
                channels = width
        self.classifier = nn.Linear(channels, config.classes, **factory)
        self._reset_weights()

    def reset_parameters(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d | nn.Linear):
                module.reset_parameters()
        for block in self.blocks:
            if isinstance(block, Highway):
                block.gate_bias = self.config.gate_bias
        self._reset_weights()

    def _reset_weights(self) -> None:
        """Initialise the filters and the classifier's weights by He's scheme, as Srivastava's code does."""
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")

    @property
    def highway_depth(self) -> int:
        return len(self.blocks) if self.config.kind == "highway" else 0

    def checkpoint_activations(self) -> None:
        self.recompute = True

    def trace(self, x: Tensor, closed: Collection[int] = ()) -> tuple[Trace, ...]:
        closed = self._check(x, closed)
        return trace_layers([self.stem, *self.blocks], _channels_last(x), closed)

    def hidden_layers(self) -> list[str]:
        return ["stem", *(f"block{number}" for number in range(1, len(self.blocks) + 1))]

    def forward_hidden(self, x: Tensor, layers: Collection[str]) -> tuple[Tensor, dict[str, Tensor]]:
        self._check(x, ())
        steps = [self.stem, *self.blocks]
        x, values = run_to_layers(steps, self.hidden_layers(), _channels_last(x), layers, self.recompute)
        return self.classifier(x.mean((2, 3))), values

    def forward(self, x: Tensor, closed: Collection[int] = ()) -> Tensor:
        closed = self._check(x, closed)
        steps = [partial(block, closed=True) if n in closed else block for n, block in enumerate(self.blocks)]
        x = run_steps([self.stem, *steps], _channels_last(x), self.recompute)
        return self.classifier(x.mean((2, 3)))  # type: ignore[no-any-return]


class Residual(nn.Module):
    """`relu(H(x) + x)`, a block of the residual network; x gets maps of zeros if the width grows."""

    def __init__(self, block: nn.Module, width: int, stride: int, before: int = 0) -> None:
        super().__init__()
        self.block, self.width, self.stride = block, width, stride
        self.before = before  # how many of the maps of zeros come before those of x

    def forward(self, x: Tensor) -> Tensor:
        x_hat = resize(x, self.width - self.before, 1, self.stride)
        if self.before:
            x_hat = torch.cat([torch.zeros_like(x_hat[:, : self.before]), x_hat], 1)
        return torch.relu(self.block(x) + x_hat)


def _channels_last(x: Tensor) -> Tensor:
    """The images in the memory format in which torch's convolutions are fastest; the layers keep it."""
    return x.contiguous(memory_format=torch.channels_last)


def _block(config: ResidualConfig, channels: int, width: int, stride: int, factory: dict[str, Any]) -> nn.Module:
    transform = partial(_two_convs, channels, width, stride, factory)
    if config.kind == "residual":
        before = max(0, width - channels) // 2 if config.zeros == "around" else 0
        return Residual(transform(), width, stride, before)
    gate = nn.Sequential(*transform(), nn.Sigmoid())
    block = nn.Sequential(*transform(), nn.ReLU())
    x_hat = None
    if channels != width or stride != 1:
        projection = nn.Conv2d(channels, width, 1, stride, bias=False, **factory)
        x_hat = nn.Sequential(projection, nn.BatchNorm2d(width, **factory))
    return Highway(block, gate, gate_bias=config.gate_bias, resize=x_hat)


def _two_convs(channels: int, width: int, stride: int, factory: dict[str, Any]) -> nn.Sequential:
    return nn.Sequential(*_conv(channels, width, stride, factory), nn.ReLU(), *_conv(width, width, 1, factory))


def _conv(channels: int, width: int, stride: int, factory: dict[str, Any]) -> list[nn.Module]:
    convolution = nn.Conv2d(channels, width, 3, stride, 1, bias=False, **factory)
    return [convolution, nn.BatchNorm2d(width, **factory)]
