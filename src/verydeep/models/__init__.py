"""The paper's networks and those it is compared with, by name."""

from verydeep.models._conv import ConvNet
from verydeep.models._layers import Conv, ConvConfig, Dense, Dropout, Highways, Pool
from verydeep.models._mlp import MLP, MLPConfig
from verydeep.models._network import Network
from verydeep.models._pretrained import (
    architecture,
    from_pretrained,
    load_weights,
    read_architecture,
    save_pretrained,
    save_weights,
    separate,
)
from verydeep.models._registry import ModelInfo, build, create_model, list_models, multiply_adds
from verydeep.models._residual import ResidualConfig, ResidualNet

__all__ = [
    "MLP",
    "Conv",
    "ConvConfig",
    "ConvNet",
    "Dense",
    "Dropout",
    "Highways",
    "MLPConfig",
    "ModelInfo",
    "Network",
    "Pool",
    "ResidualConfig",
    "ResidualNet",
    "architecture",
    "build",
    "create_model",
    "from_pretrained",
    "list_models",
    "load_weights",
    "multiply_adds",
    "read_architecture",
    "save_pretrained",
    "save_weights",
    "separate",
]
