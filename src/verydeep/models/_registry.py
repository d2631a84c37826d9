"""Networks by name: creating and counting them."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, get_args

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from verydeep.config import from_dict, to_dict
from verydeep.errors import UserError, shorten, unknown
from verydeep.memory import require_memory
from verydeep.models._cards import Card
from verydeep.models._conv import ConvNet
from verydeep.models._dasnet import DasNet, DasNetConfig
from verydeep.models._mlp import MLP, MLPConfig
from verydeep.models._network import Network
from verydeep.models._recurrent import RecurrentConfig, RecurrentNet
from verydeep.models._residual import ResidualConfig, ResidualNet
from verydeep.models._spec import ConvConfig, with_dropout
from verydeep.models._staged_conv import StagedConvConfig
from verydeep.models._zoo import NETWORKS, Config

LARGEST_DEPTH = 100_000


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
            convolutional networks also `dropout`, a multiplier of all dropout rates.

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
    _check_overrides(name, overrides)
    dropout = overrides.pop("dropout", 1.0) if _has_dropout(base) else 1.0
    config = from_dict(type(base), to_dict(base) | overrides, name)
    if isinstance(config, StagedConvConfig):
        _check_depth(config)
        config = config.describe()
    if isinstance(config, ConvConfig):
        config = with_dropout(config, dropout)
    return build(config, device=device, dtype=dtype)


def _check_overrides(name: str, overrides: Mapping[str, Any]) -> None:
    """Explain settings that only other networks have, and samples that are not images."""
    for key in overrides:
        owners = [other for other, config in NETWORKS.items() if key in _settings(config)]
        if owners and name not in owners:
            raise UserError(f"{name} has no setting '{key}'; these networks have it: {', '.join(owners)}")
    shape = overrides.get("input_shape")
    if isinstance(shape, Sequence) and len(shape) != 3 and not isinstance(NETWORKS[name], MLPConfig | RecurrentConfig):
        raise UserError(
            f"{name} takes images of shape (channels, height, width), but these samples have shape {tuple(shape)}; "
            "use highway-mlp"
        )


def _settings(config: Config | StagedConvConfig) -> set[str]:
    """What can be overridden: the fields, and the multiplier of the dropout rates of convolutional networks."""
    return {f.name for f in fields(config)} | ({"dropout"} if _has_dropout(config) else set())


def _has_dropout(config: Config | StagedConvConfig) -> bool:
    return isinstance(config, ConvConfig | StagedConvConfig)


def build(config: Config, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Network:
    """Build the network that a configuration describes, with new weights.

    Args:
        config: An `MLPConfig`, a `ConvConfig`, a `ResidualConfig`, a `RecurrentConfig` or a `DasNetConfig`.
        device: Device of the parameters.
        dtype: Data type of the parameters.

    Example:
        >>> from dataclasses import replace
        >>> from verydeep.models import build, create_model
        >>> model = create_model("highway-mlp", depth=5, width=8)
        >>> build(replace(model.config, activation="relu")).stack
        HighwayStack(width=8, depth=4, activation=relu)
    """
    _check_depth(config)
    try:
        if torch.device(torch.get_default_device() if device is None else device).type == "cpu":
            weights = _build(config, device="meta", dtype=dtype).parameters()  # allocates nothing
            require_memory(sum(each.nbytes for each in weights), "the weights of this network")
        return _build(config, device=device, dtype=dtype)
    except (MemoryError, OverflowError, RuntimeError, TypeError) as error:  # torch's, for sizes and values out of range
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if "memory" in reason or "overflowed with sizes" in reason or isinstance(error, MemoryError):
            raise UserError(f"not enough memory for this network: {reason}") from error
        if "overflow" in reason.lower() or isinstance(error, OverflowError):
            raise UserError(f"a setting of the network is too large: {reason}") from error
        raise


def _check_depth(config: Config | StagedConvConfig) -> None:
    depth = getattr(config, "depth", None) or 0
    if depth > LARGEST_DEPTH:
        raise UserError(f"a network has at most {LARGEST_DEPTH:,} hidden layers, got {shorten(depth)}")


def _build(config: Config, *, device: torch.device | str | None, dtype: torch.dtype | None) -> Network:
    match config:
        case MLPConfig():
            return MLP(config, device=device, dtype=dtype)
        case ConvConfig():
            return ConvNet(config, device=device, dtype=dtype)
        case ResidualConfig():
            return ResidualNet(config, device=device, dtype=dtype)
        case DasNetConfig():
            return DasNet(config, device=device, dtype=dtype)
        case RecurrentConfig():
            return RecurrentNet(config, device=device, dtype=dtype)
        case _:
            raise UserError(f"build takes a configuration, got {config!r}; create_model takes the name of a network")


CONFIGS: dict[str, type[Config]] = {cls.__name__: cls for cls in get_args(Config)}


def count_size(card: Card) -> dict[str, int]:
    """Count the layers, parameters and multiply-adds of a network, without allocating its weights."""
    with torch.device("meta"):
        model = create_model(card.name, **card.overrides)
        parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
        layers = model.config.depth + (
            not isinstance(model, MLP | RecurrentNet)
        )  # the paper counts the output layer of the others
        return {"layers": layers, "parameters": parameters, "multiply_adds": multiply_adds(model)}


def multiply_adds(model: nn.Module, x: Tensor | Mapping[str, Any] | tuple[Any, ...] | None = None) -> int:
    """Count the multiply-adds per sample in matrix products and convolutions.

    Args:
        model: A network, or any module.
        x: A batch of one sample, or the arguments of a module by name or in a tuple; needed for modules that are not a
            `Network`.

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
            model.eval()
            if isinstance(x, Mapping):
                model(**x)
            else:
                model(*(x if isinstance(x, tuple) else (x,)))
    finally:
        for module in training:
            module.training = True
    return int(counter.get_total_flops()) // 2
