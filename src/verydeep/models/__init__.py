"""The paper's networks and those it is compared with, by name."""

from verydeep.models._conv import ConvNet
from verydeep.models._layers import Conv, ConvConfig, Dense, Dropout, Highways, Pool
from verydeep.models._mlp import MLP, MLPConfig
from verydeep.models._network import Network
from verydeep.models._pretrained import from_pretrained, save_pretrained
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
    "build",
    "create_model",
    "from_pretrained",
    "list_models",
    "multiply_adds",
    "save_pretrained",
]
