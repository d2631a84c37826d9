"""`highway-conv`: a convolutional highway network laid out for the size of the images."""

from dataclasses import dataclass

from verydeep.errors import UserError
from verydeep.models._spec import Conv, ConvConfig, Dropout, Highways, Layer, Pool
from verydeep.nn import suggest_gate_bias

_LARGEST = 40  # highway layers see feature maps whose shorter side is at most this; larger images are halved before
_SMALLEST = 4  # maps are halved between stages while their shorter side stays at least this
_STAGES = 3
_PER_STAGE = 3  # highway layers per stage, unless the depth is given


@dataclass(frozen=True)
class HighwayConvConfig:
    """A convolutional highway network for images of any size, from 8x8 to 256x256 and beyond.

    Large images are first halved by plain convolutions of stride 2, so that the cost hardly grows with their size.
    Up to three stages follow, each a plain convolution and highway layers, with pooling and dropout between them; each
    stage has twice the feature maps of the one before. Their mean over the image goes to a linear classifier.

    Attributes:
        depth: Number of layers with weights, the classifier included; by default, three highway layers per stage.
        width: Number of feature maps of the first stage; the fused kernels take multiples of 16.
        input_shape: `(channels, height, width)`.
        classes: Number of outputs.
        gate_bias: Initial bias of all transform gates; by default, one that suits the number of highway layers.

    Example:
        >>> from verydeep.models import create_model
        >>> model = create_model("highway-conv", input_shape=(3, 48, 64), classes=5)
        >>> model.config.depth, model.highway_depth
        (13, 9)
    """

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
        side, halvings, stages = min(self.input_shape[1:]), 0, 1
        while side > _LARGEST:
            side, halvings = -(-side // 2), halvings + 1
        while stages < _STAGES and side // 2**stages >= _SMALLEST:
            stages += 1
        layers: list[Layer] = [Conv(self.width, stride=2)] * halvings
        highways = self._highways(halvings, stages)
        for stage, count in enumerate(highways):
            layers += [Pool(2, 2), Dropout(0.2)] if stage else []
            layers += [Conv(self.width * 2**stage), Highways((3,) * count)]
        layers += [Pool(how="mean"), Dropout(0.2)]
        bias = suggest_gate_bias(max(1, sum(highways))) if self.gate_bias is None else self.gate_bias
        return ConvConfig(tuple(layers), self.input_shape, self.classes, bias)

    def _highways(self, halvings: int, stages: int) -> list[int]:
        """The number of highway layers of each stage."""
        if self.depth is None:
            return [_PER_STAGE] * stages
        least = halvings + stages + 1
        if self.depth < least:
            raise UserError(
                f"depth must be at least {least} for images of shape {self.input_shape}: {least - 1} plain "
                f"convolutions and a classifier, then highway layers; got {self.depth}"
            )
        each, more = divmod(self.depth - least, stages)
        return [each + (stage < more) for stage in range(stages)]
