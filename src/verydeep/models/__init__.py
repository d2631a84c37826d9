"""The networks of the paper, those it is compared with, and two of ours for images of any size.

`_zoo` describes the named networks, `_cards` lists them with published results, `_spec` has the vocabulary that
describes convolutional ones, and `_staged_conv` lays two out for any size of images; `_mlp`, `_conv`, `_residual`,
`_recurrent` and `_dasnet` build networks from configurations, `_registry` creates them by name, `_weights` saves and
loads them, and `_quantise` stores weights in a byte each. A name or a configuration goes in; a `Network`, which maps a
batch of samples to logits, comes out.
"""

from typing import TYPE_CHECKING

from verydeep.lazy import lazy_imports

if TYPE_CHECKING:
    from verydeep.models._cards import ModelInfo, list_models
    from verydeep.models._conv import ConvNet
    from verydeep.models._dasnet import DasNet, DasNetConfig
    from verydeep.models._mlp import MLP, MLPConfig
    from verydeep.models._network import Network
    from verydeep.models._quantise import dequantise as dequantise, quantise as quantise
    from verydeep.models._recurrent import RecurrentConfig, RecurrentNet
    from verydeep.models._registry import build, create_model, multiply_adds
    from verydeep.models._residual import ResidualConfig, ResidualNet
    from verydeep.models._spec import Conv, ConvConfig, Dense, Dropout, Highways, Pool
    from verydeep.models._staged_conv import ConvStages as ConvStages, conv_stages as conv_stages
    from verydeep.models._weights import (
        architecture as architecture,
        from_pretrained,
        load_tensors as load_tensors,
        load_weights,
        parse_tensors as parse_tensors,
        read_architecture as read_architecture,
        read_tensors as read_tensors,
        save_pretrained,
        save_tensors as save_tensors,
        save_weights,
        separate as separate,
    )
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = [
    "MLP",
    "Conv",
    "ConvConfig",
    "ConvNet",
    "DasNet",
    "DasNetConfig",
    "Dense",
    "Dropout",
    "Highways",
    "MLPConfig",
    "ModelInfo",
    "Network",
    "Pool",
    "RecurrentConfig",
    "RecurrentNet",
    "ResidualConfig",
    "ResidualNet",
    "build",
    "create_model",
    "from_pretrained",
    "list_models",
    "load_weights",
    "multiply_adds",
    "save_pretrained",
    "save_weights",
]
