"""`highway-conv` and `plain-conv`: convolutional networks laid out for the size of the images."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from verydeep.errors import UserError
from verydeep.models._spec import Conv, ConvConfig, Dropout, Highways, Layer, Pool
from verydeep.nn import suggest_gate_bias

_LARGEST = 40  # stages see feature maps whose shorter side is at most this; larger images are halved before
_SMALLEST = 4  # maps are halved between stages while their shorter side stays at least this
_STAGES = 3
_PER_STAGE = 4  # layers per stage, unless the depth is given


@dataclass(frozen=True)
class ConvStages:
    """How `highway-conv` and `plain-conv` are laid out for images of some size.

    Attributes:
        halvings: Number of plain convolutions of stride 2 in front of the stages.
        stages: Number of stages.
    """

    halvings: int
    stages: int

    def depth(self, layers: int) -> int:
        """The number of hidden layers of a network with `layers` layers per stage.

        Args:
            layers: At least 1; the plain convolution at the start of each stage is counted.
        """
        if layers < 1:
            raise UserError(f"a stage has at least 1 layer, its plain convolution; got {layers}")
        return self.halvings + self.stages * layers


def conv_stages(input_shape: Sequence[int]) -> ConvStages:
    """The number of halving convolutions and stages that `highway-conv` and `plain-conv` have for images of a size.

    Args:
        input_shape: `(channels, height, width)`.

    Example:
        >>> from verydeep.models import conv_stages, create_model
        >>> stages = conv_stages((3, 48, 64))
        >>> stages
        ConvStages(halvings=1, stages=3)
        >>> model = create_model("highway-conv", input_shape=(3, 48, 64), depth=stages.depth(2))
        >>> model.config.depth, model.highway_depth  # a plain convolution and a highway layer per stage
        (7, 3)
    """
    if len(input_shape) != 3 or min(input_shape) < 1:
        raise UserError(f"input_shape must be (channels, height, width), got {tuple(input_shape)}")
    side, halvings, stages = min(input_shape[1:]), 0, 1
    while side > _LARGEST:
        side, halvings = -(-side // 2), halvings + 1
    while stages < _STAGES and side // 2**stages >= _SMALLEST:
        stages += 1
    return ConvStages(halvings, stages)


@dataclass(frozen=True)
class StagedConvConfig:
    """A convolutional network for images of any size, from 8x8 to 256x256 and beyond.

    Large images are first halved by plain convolutions of stride 2, so that the cost hardly grows with their size.
    Up to three stages follow, each a plain convolution and then highway layers or further plain convolutions, with
    pooling and dropout between the stages; each stage has twice the feature maps of the one before. Their mean over the
    image goes to a linear classifier.

    Attributes:
        kind: The kind of layer after the first of each stage, highway or plain.
        depth: Number of hidden layers: all convolutions and highway layers; by default, four per stage and those that
            halve large images.
        width: Number of feature maps of the first stage; the fused kernels suit multiples of 16 best.
        input_shape: `(channels, height, width)`.
        classes: Number of outputs.
        gate_bias: Initial bias of all transform gates; by default, one that suits the number of highway layers.

    Example:
        >>> from verydeep.models import create_model
        >>> model = create_model("highway-conv", input_shape=(3, 48, 64), classes=5)
        >>> model.config.depth, model.highway_depth
        (13, 9)
        >>> model = create_model("plain-conv", input_shape=(3, 48, 64), classes=5)
        >>> model.config.depth, model.highway_depth
        (13, 0)
    """

    kind: Literal["highway", "plain"]
    depth: int | None = None
    width: int = 16
    input_shape: tuple[int, ...] = (3, 32, 32)
    classes: int = 10
    gate_bias: float | None = None

    def describe(self) -> ConvConfig:
        """The network layer by layer."""
        if len(self.input_shape) != 3 or min(*self.input_shape, self.width, self.classes) < 1:
            raise UserError(
                "input_shape must be (channels, height, width), and width and classes at least 1, "
                f"got {self.input_shape}, {self.width} and {self.classes}"
            )
        counts = self._layers_after_the_first()
        layers: list[Layer] = [Conv(self.width, stride=2)] * conv_stages(self.input_shape).halvings
        for stage, count in enumerate(counts):
            width = self.width * 2**stage
            layers += [Pool(2, 2), Dropout(0.2)] if stage else []
            layers.append(Conv(width))
            layers += [Highways((3,) * count)] if self.kind == "highway" else [Conv(width)] * count
        layers += [Pool(how="mean"), Dropout(0.2)]
        bias = suggest_gate_bias(max(1, sum(counts))) if self.gate_bias is None else self.gate_bias
        return ConvConfig(tuple(layers), self.input_shape, self.classes, bias)

    def _layers_after_the_first(self) -> list[int]:
        """The number of layers of each stage after its plain convolution."""
        layout = conv_stages(self.input_shape)
        depth, least = self.depth, layout.depth(1)
        if depth is None:
            depth = layout.depth(_PER_STAGE)
        if depth < least:
            raise UserError(
                f"depth must be at least {least} for images of shape {self.input_shape}, which pass {least} plain "
                f"convolutions in any case; got {depth}"
            )
        each, more = divmod(depth - least, layout.stages)
        return [each + (stage < more) for stage in range(layout.stages)]
