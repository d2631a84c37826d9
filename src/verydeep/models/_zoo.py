"""The named networks: their descriptions; `_cards` has what was published about them.

References: the networks of Srivastava, Greff & Schmidhuber 2015 ("the paper") and of its authors' published code;
FitNets: Romero et al. 2014; Maxout: Goodfellow et al. 2013; NiN: Lin et al. 2014; All-CNN: Springenberg et al. 2014;
DSN: Lee et al. 2015; dasNet: Stollenga et al. 2014; ResNet: He et al. 2015; recurrent highway networks: Zilly et al.
2017.
"""

from verydeep.models._dasnet import DasNetConfig
from verydeep.models._mlp import MLPConfig
from verydeep.models._recurrent import RecurrentConfig
from verydeep.models._residual import ResidualConfig
from verydeep.models._spec import Conv, ConvConfig, Dense, Dropout, Highways, Layer, Pool
from verydeep.models._staged_conv import StagedConvConfig

Config = MLPConfig | ConvConfig | ResidualConfig | RecurrentConfig | DasNetConfig


def _highway_mnist(width: int) -> ConvConfig:
    layers = (
        *(Dropout(0.2), Conv(width, 5, padding=0), Highways((3, 3)), Pool(3, 2)),
        *(Dropout(0.3), Highways((3, 3, 3)), Pool(3, 2)),
        *(Dropout(0.4), Highways((3, 3, 3)), Pool(2, 2)),
        Dropout(0.5),
    )
    return ConvConfig(layers, (1, 28, 28), gate_bias=-1.0, classifier_std=0.1)


def _stages(*stages: tuple[int, tuple[int, ...]]) -> tuple[Layer, ...]:
    """Per stage: dropout, a plain 3x3 layer that sets the width, highway layers; pooling between stages."""
    layers: list[Layer] = []
    for width, kernels in stages:
        layers += [Dropout(0.2), Conv(width), Highways(kernels), Pool(2, 2)]
    return tuple(layers[:-1])


_TRUNK_19 = _stages((32, (3,) * 4), (80, (3,) * 5), (128, (3,) * 5))
_NIN_HEAD = (Conv(100, 1), Pool(how="mean"), Dropout(0.2))
_ALTERNATING = (3, 1, 3, 1, 3, 1, 3, 1, 3)


def _fitnet(*stages: tuple[int, ...]) -> ConvConfig:
    layers: list[Layer] = []
    for widths in stages:
        layers += [Dropout(0.2), *(Conv(width, pieces=2) for width in widths), Pool(2, 2)]
    return ConvConfig((*layers[:-1], Pool(), Dense(500, pieces=2), Dropout(0.2)))


def _maxout_cifar(pieces: int) -> ConvConfig:
    """The maxout network for CIFAR, with this many pieces in the fully connected layer."""
    layers = (
        *(Dropout(0.2), Conv(96, 8, padding=4, pieces=2), Pool(4, 2)),
        *(Dropout(0.5), Conv(192, 8, padding=3, pieces=2), Pool(4, 2)),
        *(Dropout(0.5), Conv(192, 5, padding=3, pieces=2), Pool(2, 2)),
        *(Dropout(0.5), Dense(500, pieces=pieces), Dropout(0.5)),
    )
    return ConvConfig(layers)


_NIN = (  # without its last layer
    *(Conv(192, 5), Conv(160, 1), Conv(96, 1), Pool(3, 2), Dropout(0.5)),
    *(Conv(192, 5), Conv(192, 1), Conv(192, 1), Pool(3, 2), Dropout(0.5)),
    *(Conv(192, 3), Conv(192, 1)),
)

NETWORKS: dict[str, Config | StagedConvConfig] = {
    "highway-mlp": MLPConfig("highway"),
    "plain-mlp": MLPConfig("plain", width=71),
    "residual-mlp": MLPConfig("residual", width=71),
    "lstm-highway": MLPConfig("lstm", width=35),
    "recurrent-highway": RecurrentConfig(),
    "highway-mnist-16": _highway_mnist(16),
    "highway-mnist-32": _highway_mnist(32),
    "fitnet-a": _fitnet((16, 16, 16), (32, 32, 32), (48, 48, 64)),
    "fitnet-a-9": _fitnet((24, 24), (32, 32), (56, 56, 56)),
    "fitnet-a-7": _fitnet((48,), (48, 48), (56, 56)),
    "fitnet-a-5": _fitnet((64,), (72,), (72,)),
    "fitnet-b": _fitnet((32, 32, 32, 48, 48), (80,) * 6, (128,) * 6),
    "highway-a": ConvConfig(
        (*_stages((16, (3, 3)), (32, (3, 3)), (64, (3, 3))), Pool(), Dense(250), Dropout(0.2)),
        gate_bias=-1.0,
    ),
    "highway-b": ConvConfig((*_TRUNK_19, Pool(), Dense(500), Dropout(0.2)), gate_bias=-2.0),
    "highway-c": ConvConfig(
        (*_stages((24, _ALTERNATING), (48, _ALTERNATING), (96, _ALTERNATING)), *_NIN_HEAD),
        gate_bias=-3.0,
    ),
    "highway-19-nin": ConvConfig((*_TRUNK_19, *_NIN_HEAD), gate_bias=-2.0),
    "maxout": _maxout_cifar(2),
    "maxout-cifar": _maxout_cifar(5),
    "dasnet": DasNetConfig(_maxout_cifar(5).layers),
    "maxout-mnist": ConvConfig(
        (
            *(Dropout(0.2), Conv(48, 8, padding=0, pieces=2), Pool(4, 2)),
            *(Dropout(0.5), Conv(48, 8, padding=3, pieces=2), Pool(4, 2)),
            *(Dropout(0.5), Conv(24, 5, padding=3, pieces=4), Pool(2, 2), Dropout(0.5)),
        ),
        input_shape=(1, 28, 28),
    ),
    "dsn-mnist": ConvConfig(
        (
            *(Conv(96, 5), Conv(64, 1), Conv(48, 1), Pool(3, 2), Dropout(0.5)),
            *(Conv(128, 5), Conv(96, 1), Conv(48, 1), Pool(3, 2), Dropout(0.5)),
            *(Conv(128, 5), Conv(96, 1), Conv(None, 1, linear=True), Pool(how="mean")),
        ),
        input_shape=(1, 28, 28),
        classifier_std=None,
    ),
    "dsn": ConvConfig((*_NIN, Conv(None, 1, linear=True), Pool(how="mean")), classifier_std=None),
    "nin": ConvConfig((*_NIN, Conv(None, 1), Pool(how="mean")), classifier_std=None),
    "all-cnn-c": ConvConfig(
        (
            *(Dropout(0.2), Conv(96), Conv(96), Conv(96, stride=2)),
            *(Dropout(0.5), Conv(192), Conv(192), Conv(192, stride=2)),
            *(Dropout(0.5), Conv(192, padding=0), Conv(192, 1), Conv(None, 1), Pool(how="mean")),
        ),
        classifier_std=None,
    ),
    "resnet-110": ResidualConfig("residual", zeros="around"),
    "highway-110": ResidualConfig("highway", widths=(14, 28, 56)),
    "highway-conv": StagedConvConfig("highway"),
    "plain-conv": StagedConvConfig("plain"),
}
