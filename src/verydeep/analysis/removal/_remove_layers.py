"""Removing highway layers from a network: the networks of `verydeep.models`, and any other module."""

import copy
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import TypeVar, cast

import torch
from torch import Tensor, nn

from verydeep.analysis.blocks._blocks import ClosableModule, closable_modules
from verydeep.errors import UserError
from verydeep.models import MLP, ConvNet, Highways, Network, ResidualNet, build
from verydeep.nn import (
    Highway,
    HighwayConv1d,
    HighwayConv2d,
    HighwayConv3d,
    HighwayLayer,
    HighwayLinear,
    HighwayStack,
    ResidualStack,
)
from verydeep.nn.functional import resize

Module = TypeVar("Module", bound=nn.Module)
OurNetwork = TypeVar("OurNetwork", bound=Network)


@dataclass(frozen=True)
class LayerLocation:
    """Where a layer is.

    Attributes:
        number: Its number in the model, in the order in which modules were registered.
        module: The module that contains it.
        layer: Its number in that module.
    """

    number: int
    module: ClosableModule
    layer: int


def layer_locations(model: nn.Module) -> dict[str, LayerLocation]:
    """Every highway layer and layer of a residual stack by name, in the order in which modules were registered."""
    locations: dict[str, LayerLocation] = {}
    for name, module in closable_modules(model):
        if isinstance(module, HighwayLayer):
            locations[name] = LayerLocation(len(locations), module, 0)
        else:
            first = len(locations)
            locations |= {f"{name}.{n}": LayerLocation(first + n, module, n) for n in range(module.depth)}
    return locations


def smaller_mlp(model: MLP, removed: Collection[int]) -> MLP:
    """A fully connected network with a shorter stack, or none."""
    assert isinstance(model.stack, HighwayStack | ResidualStack)
    kept = [layer for layer in range(model.stack.depth) if layer not in removed]
    # The gate bias must not follow from the new depth: it is what training started from.
    bias = model.stack.initial_gate_bias if isinstance(model.stack, HighwayStack) else None
    config = replace(model.config, depth=1 + len(kept), gate_bias=bias)
    weights = {name: value[kept] if name.startswith("stack.") else value for name, value in model.state_dict().items()}
    if not kept:
        weights = {name: value for name, value in weights.items() if not name.startswith("stack.")}
    return _build(MLP, model, config, weights)


def smaller_conv(model: ConvNet, removed: Collection[int]) -> ConvNet:
    """A convolutional network with fewer highway layers in its description."""
    numbers = count()
    layers = []
    for layer in model.config.layers:
        if isinstance(layer, Highways):
            layer = Highways(tuple(kernel for kernel in layer.kernels if next(numbers) not in removed))  # noqa: PLW2901
        if layer != Highways(()):
            layers.append(layer)
    numbers = count()
    kept = [module for module in model.layers if not (isinstance(module, HighwayConv2d) and next(numbers) in removed)]
    config = replace(model.config, layers=tuple(layers))
    with torch.device("meta"):
        names = [name for name, _ in build(config).layers.named_children()]  # type: ignore[union-attr]
    weights = {name: value for name, value in model.state_dict().items() if not name.startswith("layers.")}
    for name, module in zip(names, kept, strict=True):
        weights |= {f"layers.{name}.{key}": value for key, value in module.state_dict().items()}
    result = _build(ConvNet, model, config, weights)
    result.recompute = model.recompute
    return result


def smaller_residual(model: ResidualNet, removed: Collection[int]) -> ResidualNet:
    """The 110-layer network with fewer blocks in its stages."""
    stages = model.config.stages
    stage_of = [stage for stage, blocks in enumerate(stages) for _ in range(blocks)]
    for number in sorted(removed):
        first = number > 0 and stage_of[number] != stage_of[number - 1]
        wider = number == 0 and model.config.stem != model.config.widths[0]
        if getattr(model.blocks[number], "resize", None) is not None or first or wider:
            raise UserError(f"blocks.{number} changes the shape and cannot be removed from a {type(model).__name__}")
    left = tuple(sum(at == stage and n not in removed for n, at in enumerate(stage_of)) for stage in range(len(stages)))
    kept = [number for number in range(len(model.blocks)) if number not in removed]
    weights = {name: value for name, value in model.state_dict().items() if not name.startswith("blocks.")}
    for new, old in enumerate(kept):
        weights |= {f"blocks.{new}.{key}": value for key, value in model.blocks[old].state_dict().items()}
    result = _build(ResidualNet, model, replace(model.config, blocks=left), weights)
    result.recompute = model.recompute
    return result


def _build(kind: type[OurNetwork], model: Network, config: object, weights: dict[str, Tensor]) -> OurNetwork:
    with torch.device("meta"):
        result = build(config)  # type: ignore[arg-type]
    assert isinstance(result, kind)
    result.load_state_dict({name: value.detach().clone() for name, value in weights.items()}, assign=True)
    return result.train(model.training)


def remove_from_module(model: Module, removed: set[int]) -> Module:
    """A copy of any module in which other modules take the places of the removed layers."""
    memo: dict[int, object] = {}
    result = copy.deepcopy(model, memo)
    replaced: dict[int, nn.Module] = {}
    locations = layer_locations(model).values()
    for _, module in closable_modules(model):
        own = {location.layer for location in locations if location.module is module and location.number in removed}
        if own:
            copied = cast(ClosableModule, memo[id(module)])
            replaced[id(copied)] = _without_layers(copied, own)
    for parent in list(result.modules()):
        for name, child in parent.named_children():
            if id(child) in replaced:
                setattr(parent, name, replaced[id(child)])
    return cast(Module, replaced.get(id(result), result))


def _without_layers(module: ClosableModule, removed: set[int]) -> nn.Module:
    if isinstance(module, HighwayLayer):
        return _closed_layer(module)
    kept = [layer for layer in range(module.depth) if layer not in removed]
    if not kept:
        return CarryInput()
    module.weight = nn.Parameter(module.weight.detach()[kept], module.weight.requires_grad)
    module.bias = nn.Parameter(module.bias.detach()[kept], module.bias.requires_grad)
    module.depth = len(kept)
    return module


def _closed_layer(layer: HighwayLayer) -> nn.Module:
    """A module that computes what the layer computes when it is closed."""
    match layer:
        case Highway():
            return CarryInput(layer.resize)
        case HighwayLinear():
            return CarryInput(partial(resize, width=layer.out_width))
        case HighwayConv1d() | HighwayConv2d() | HighwayConv3d():
            return CarryInput(partial(resize, width=layer.out_channels, dim=layer.block_dim, stride=layer.stride))
    return CarryInput() if type(layer).x_hat is HighwayLayer.x_hat else AlwaysClosed(layer)


class CarryInput(nn.Module):
    """Takes the place of a removed highway layer: returns its input, or x-hat if the layer changed the shape."""

    def __init__(self, x_hat: Callable[[Tensor], Tensor] | None = None) -> None:
        super().__init__()
        self.x_hat = x_hat

    def forward(self, x: Tensor, closed: object = False) -> Tensor:
        return (x if self.x_hat is None else self.x_hat(x)).clone()  # the next module may change it in place


class AlwaysClosed(nn.Module):
    """Keeps a user-defined highway layer closed; only the layer itself knows how to compute its x-hat."""

    def __init__(self, layer: HighwayLayer) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, closed: object = True) -> Tensor:
        return self.layer(x, closed=True)  # type: ignore[no-any-return]
