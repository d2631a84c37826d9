"""The vocabulary for describing convolutional networks: one entry per layer, from input to output.

    (Dropout(0.2), Conv(16, 5, padding=0), Highways((3, 3)), Pool(3, 2), ...)

A description is data: it is saved with a model, and a layer is removed from a network by removing it here.
"""

from dataclasses import dataclass, replace
from typing import Literal

from verydeep.errors import UserError


@dataclass(frozen=True)
class Conv:
    """A plain convolution with a rectifier, with maxout over several `pieces`, or without an activation.

    Attributes:
        channels: Number of feature maps of the output; None means one per class.
        kernel: Side of the receptive field.
        padding: Zeros around the maps; None keeps their size (odd kernels).
        stride: Stride of the convolution.
        pieces: Number of linear pieces of maxout; 1 is a rectifier.
        linear: Whether there is no activation.

    Example:
        >>> from verydeep.models import Conv
        >>> Conv(32, kernel=5, padding=0)
        Conv(channels=32, kernel=5, padding=0, stride=1, pieces=1, linear=False)
    """

    channels: int | None
    kernel: int = 3
    padding: int | None = None
    stride: int = 1
    pieces: int = 1
    linear: bool = False

    def __post_init__(self) -> None:
        _check(self, 1, "channels", "kernel", "stride", "pieces")
        _check(self, 0, "padding")
        if self.linear and self.pieces > 1:
            raise UserError(f"a Conv is linear or has {self.pieces} pieces of maxout, not both")


@dataclass(frozen=True)
class Highways:
    """Convolutional highway layers that keep the width.

    Attributes:
        kernels: The side of the receptive field of each layer.

    Example:
        >>> from verydeep.models import Highways
        >>> Highways((3, 3, 1))  # three layers
        Highways(kernels=(3, 3, 1))
    """

    kernels: tuple[int, ...]


@dataclass(frozen=True)
class Pool:
    """Pooling whose output size is rounded up.

    Attributes:
        size: Side of the window; None pools whole maps.
        stride: Distance between windows.
        how: "max" or "mean".

    Example:
        >>> from verydeep.models import Pool
        >>> Pool(3, stride=2), Pool(how="mean")
        (Pool(size=3, stride=2, how='max'), Pool(size=None, stride=2, how='mean'))
    """

    size: int | None = None
    stride: int = 2
    how: Literal["max", "mean"] = "max"

    def __post_init__(self) -> None:
        _check(self, 1, "size", "stride")


@dataclass(frozen=True)
class Dropout:
    """Dropout of single values.

    Attributes:
        p: The probability that a value is dropped.

    Example:
        >>> from verydeep.models import Dropout
        >>> Dropout(0.2)
        Dropout(p=0.2)
    """

    p: float

    def __post_init__(self) -> None:
        if not 0 <= self.p < 1:
            raise UserError(f"dropout must be at least 0 and less than 1, got {self.p}")


@dataclass(frozen=True)
class Dense:
    """A fully connected layer with a rectifier, or with maxout over several `pieces`.

    Attributes:
        units: Number of units.
        pieces: Number of linear pieces of maxout; 1 is a rectifier.

    Example:
        >>> from verydeep.models import Dense
        >>> Dense(500, pieces=2)
        Dense(units=500, pieces=2)
    """

    units: int
    pieces: int = 1

    def __post_init__(self) -> None:
        _check(self, 1, "units", "pieces")


Layer = Conv | Highways | Pool | Dropout | Dense


def _check(layer: object, least: int, *names: str) -> None:
    for name in names:
        value = getattr(layer, name)
        if value is not None and value < least:
            raise UserError(f"{name} of a {type(layer).__name__} must be at least {least}, got {value}")


@dataclass(frozen=True)
class ConvConfig:
    """A convolutional network.

    Attributes:
        layers: The layers, from input to output.
        input_shape: `(channels, height, width)`.
        classes: Number of outputs.
        gate_bias: Initial bias of all transform gates.
        classifier_std: Standard deviation of the classifier's initial weights; None if the layers themselves end in
            one value per class and there is no linear classifier.
        init: The initial weights of all other layers, as for `HighwayStack`; by default, He's normal.

    Example:
        >>> from verydeep.models import Conv, ConvConfig, Highways, Pool, build
        >>> config = ConvConfig((Conv(16), Highways((3, 3, 3)), Pool()), input_shape=(1, 8, 8), gate_bias=-2.0)
        >>> config.depth, build(config).highway_depth
        (4, 3)
    """

    layers: tuple[Layer, ...]
    input_shape: tuple[int, ...] = (3, 32, 32)
    classes: int = 10
    gate_bias: float = -1.0
    classifier_std: float | None = 0.05
    init: str = "auto"

    def __post_init__(self) -> None:
        if len(self.input_shape) != 3 or min(self.input_shape) < 1 or self.classes < 1:
            raise UserError(
                f"input_shape must be (channels, height, width) and classes at least 1, "
                f"got {self.input_shape} and {self.classes}"
            )

    @property
    def depth(self) -> int:
        """The number of hidden layers, which is one less than that of layers with weights."""
        counted = sum(
            len(layer.kernels) if isinstance(layer, Highways) else isinstance(layer, Conv | Dense)
            for layer in self.layers
        )
        return counted - (self.classifier_std is None)  # without a classifier, the last convolution is the output


def with_dropout(config: ConvConfig, factor: float) -> ConvConfig:
    """The network with every dropout rate multiplied by a factor; 0 switches dropout off."""
    rates = [layer.p * factor for layer in config.layers if isinstance(layer, Dropout)]
    if not all(0 <= rate < 1 for rate in rates):
        raise UserError(
            f"dropout = {factor} multiplies the network's dropout rates, and each must stay at least 0 and less than 1"
        )
    layers = [replace(layer, p=layer.p * factor) if isinstance(layer, Dropout) else layer for layer in config.layers]
    return replace(config, layers=tuple(layers))
