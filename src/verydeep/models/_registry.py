"""Networks by name: creating, listing and counting them."""

from dataclasses import dataclass
from typing import Any, get_args

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from verydeep.config import from_dict, to_dict
from verydeep.errors import unknown
from verydeep.models._conv import ConvNet
from verydeep.models._mlp import MLP, MLPConfig
from verydeep.models._network import Network
from verydeep.models._residual import ResidualConfig, ResidualNet
from verydeep.models._spec import ConvConfig, with_dropout
from verydeep.models._zoo import CARDS, NETWORKS, Card, Config


def create_model(
    name: str,
    *,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
    **overrides: Any,  # noqa: ANN401 - fields of the configuration
) -> Network:
    """Create a named network with new weights.

    Args:
        name: One of `list_models()`.
        device: Device of the parameters.
        dtype: Data type of the parameters.
        **overrides: Fields of the network's configuration: depth, width, classes, input_shape, gate_bias, ...; for
            convolutional networks also `dropout`, a factor on the rates of the network.

    Raises:
        UserError: If there is no such network, or it has no such field.

    Example:
        >>> import torch
        >>> from verydeep.models import create_model
        >>> model = create_model("highway-mlp", depth=100, width=20, input_shape=(30,), classes=2)
        >>> model(torch.randn(8, 30)).shape
        torch.Size([8, 2])
    """
    if name not in NETWORKS:
        raise unknown("model", name, NETWORKS)
    base = NETWORKS[name]
    if isinstance(base, ConvConfig) and "dropout" in overrides:
        base = with_dropout(base, overrides.pop("dropout"))
    return build(from_dict(type(base), to_dict(base) | overrides, name), device=device, dtype=dtype)


def build(config: Config, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Network:
    """Build the network that a configuration describes, with new weights.

    Args:
        config: An `MLPConfig`, a `ConvConfig` or a `ResidualConfig`.
        device: Device of the parameters.
        dtype: Data type of the parameters.

    Example:
        >>> from dataclasses import replace
        >>> from verydeep.models import build, create_model
        >>> model = create_model("highway-mlp", depth=5, width=8)
        >>> build(replace(model.config, activation="relu")).stack
        HighwayStack(width=8, depth=4, activation=relu)
    """
    match config:
        case MLPConfig():
            return MLP(config, device=device, dtype=dtype)
        case ConvConfig():
            return ConvNet(config, device=device, dtype=dtype)
        case ResidualConfig():
            return ResidualNet(config, device=device, dtype=dtype)


CONFIGS: dict[str, type[Config]] = {cls.__name__: cls for cls in get_args(Config)}


@dataclass(frozen=True, kw_only=True)
class ModelInfo(Card):
    """What `list_models` says about a network.

    Attributes:
        name: The name for `create_model`.
        dataset: The dataset on which the accuracy was measured.
        source: Table or figure of the paper, or another publication.
        published: Test accuracy in percent as its authors report it: the best (mean ± standard deviation), or one
            number.
        inferred: What was not published, and how it is built here.
        overrides: Arguments for `create_model` if this is a variant of the named network.
        layers: Number of layers with weights; of fully connected networks the hidden ones, as the paper counts them.
        parameters: Number of trainable parameters.
        multiply_adds: Number of multiply-adds per sample in matrix products and convolutions.

    Example:
        >>> from verydeep.models import list_models
        >>> {model.name: model.published for model in list_models()}["highway-c"]
        '91.20'
    """

    layers: int
    parameters: int
    multiply_adds: int


def list_models() -> list[ModelInfo]:
    """Every named network with the variants that the paper names, in the order of the paper.

    Example:
        >>> from verydeep.models import list_models
        >>> model = list_models()[0]
        >>> model.name, model.layers, model.parameters
        ('highway-mlp', 10, 85660)
    """
    return [describe(card) for card in CARDS]


def describe(card: Card) -> ModelInfo:
    """Add the size of a network to its card, without allocating the network."""
    with torch.device("meta"):
        model = create_model(card.name, **card.overrides)
        parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
        size = {"layers": model.config.depth, "parameters": parameters, "multiply_adds": multiply_adds(model)}
    return ModelInfo(**vars(card), **size)


def multiply_adds(model: nn.Module, x: Tensor | None = None) -> int:
    """Count the multiply-adds per sample in matrix products and convolutions.

    Args:
        model: A network, or any module.
        x: A batch of one sample; needed for modules that are not a `Network`.

    Example:
        >>> import torch
        >>> from verydeep.models import create_model, multiply_adds
        >>> multiply_adds(create_model("highway-mlp", depth=10, device="meta"))
        84700
        >>> multiply_adds(torch.nn.Linear(20, 30), torch.zeros(1, 20))
        600
    """
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
