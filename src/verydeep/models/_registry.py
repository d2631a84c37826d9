"""Networks by name."""

from dataclasses import dataclass
from typing import Any, get_args

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from verydeep.config import from_dict, to_dict
from verydeep.errors import unknown
from verydeep.models._cards import CARDS, Card
from verydeep.models._conv import ConvNet
from verydeep.models._layers import ConvConfig, with_dropout
from verydeep.models._mlp import MLP, MLPConfig
from verydeep.models._network import Network
from verydeep.models._networks import NETWORKS, Config
from verydeep.models._residual import ResidualConfig, ResidualNet


def create_model(name: str, **overrides: Any) -> Network:  # noqa: ANN401 - whatever the network's config has
    """A network by name, freshly initialised, e.g. `create_model("highway-mlp", depth=100)`.

    Args:
        name: One of `list_models()`.
        **overrides: Fields of the network's configuration: depth, width, classes, input_shape, gate_bias, ...; for
            convolutional networks also `dropout`, a factor on the network's own rates.
    """
    if name not in NETWORKS:
        raise unknown("model", name, NETWORKS)
    base = NETWORKS[name]
    if isinstance(base, ConvConfig) and "dropout" in overrides:
        base = with_dropout(base, overrides.pop("dropout"))
    return build(from_dict(type(base), to_dict(base) | overrides, name))


def build(config: Config) -> Network:
    """The network that a configuration describes."""
    match config:
        case MLPConfig():
            return MLP(config)
        case ConvConfig():
            return ConvNet(config)
        case ResidualConfig():
            return ResidualNet(config)


CONFIGS: dict[str, type[Config]] = {cls.__name__: cls for cls in get_args(Config)}


@dataclass(frozen=True, kw_only=True)
class ModelInfo(Card):
    """A network's card with its size, counted on the network itself.

    Attributes:
        layers: Layers with weights; for fully connected networks the hidden ones, as the paper counts them.
        parameters: Trainable parameters.
        multiply_adds: Multiply-adds of the products for one sample.
    """

    layers: int
    parameters: int
    multiply_adds: int


def list_models() -> list[ModelInfo]:
    """Every named network with its variants that the paper names, in the paper's order."""
    return [describe(card) for card in CARDS]


def describe(card: Card) -> ModelInfo:
    """Count a network without allocating it."""
    with torch.device("meta"):
        model = create_model(card.name, **card.overrides)
        parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
        size = {"layers": model.config.depth, "parameters": parameters, "multiply_adds": multiply_adds(model)}
    return ModelInfo(**vars(card), **size)


def multiply_adds(model: nn.Module, x: Tensor | None = None) -> int:
    """Multiply-adds of the model's products for one sample; of your own module, give a batch of one as `x`."""
    device = next(model.parameters()).device
    if x is None:
        assert isinstance(model, Network)
        x = torch.zeros(1, *model.input_shape, device=device)
    training = [module for module in model.modules() if module.training]
    counter = FlopCounterMode(display=False)
    try:
        with counter, torch.no_grad():
            model.eval()(x)
    finally:
        for module in training:
            module.training = True
    return int(counter.get_total_flops()) // 2
