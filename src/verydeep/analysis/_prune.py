"""The network without its idle layers. A closed layer copies its input, so removing it changes nothing else."""

import copy
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeVar, cast

from torch import nn

from verydeep.analysis._carried import Carried, carried
from verydeep.analysis._results import DepthUsage
from verydeep.analysis._view import HighwayModule, units
from verydeep.analysis._without import smaller_conv, smaller_mlp, smaller_residual
from verydeep.errors import UserError, unknown
from verydeep.models import MLP, ConvNet, Network, ResidualNet
from verydeep.nn import Highway, HighwayLayer

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class _Place:
    """Where a layer is: the module that has it, and which of the module's layers it is."""

    number: int
    module: HighwayModule
    layer: int


def prune(model: Model, remove: DepthUsage | Collection[int | str]) -> Model:
    """A copy without some highway layers; its outputs are those of the model with these layers closed, to the bit.

    Our networks become smaller networks of the same kind. In a module of your own, stacks are shortened and single
    layers replaced by modules that hand on their input. A fully connected network keeps at least one highway layer.

    Args:
        model: It is not changed.
        remove: The layers to remove: those that `depth_usage` found idle, or the layers' names; numbers, as for
            `closed`, if it is one of our networks.
    """
    places = _places(model)
    gone = {places[name].number for name in _names(model, remove, places)}
    if not gone:
        return copy.deepcopy(model)
    if isinstance(model, MLP):
        return cast(Model, smaller_mlp(model, gone))
    if isinstance(model, ConvNet):
        return cast(Model, smaller_conv(model, gone))
    if isinstance(model, ResidualNet):
        return cast(Model, smaller_residual(model, gone))
    return _without(model, gone)


def highway_layers(model: nn.Module) -> tuple[str, ...]:
    """The names of all highway layers, in the order in which modules were registered."""
    return tuple(_places(model))


def removable(model: nn.Module) -> tuple[str, ...]:
    """The names of the layers that can be removed: all, but those that change the shape in a residual network."""
    fixed = isinstance(model, ResidualNet)
    return tuple(
        name
        for name, place in _places(model).items()
        if not (fixed and isinstance(place.module, Highway) and place.module.resize is not None)
    )


def _places(model: nn.Module) -> dict[str, _Place]:
    places: dict[str, _Place] = {}
    for name, module in units(model):
        if isinstance(module, HighwayLayer):
            places[name] = _Place(len(places), module, 0)
        else:
            places |= {f"{name}.{n}": _Place(len(places) + n, module, n) for n in range(module.depth)}
    return places


def _names(model: nn.Module, remove: DepthUsage | Collection[int | str], places: dict[str, _Place]) -> list[str]:
    if isinstance(remove, DepthUsage):
        idle = remove.idle
        if isinstance(model, MLP) and len(idle) == len(places):
            idle = idle[:-1]  # it needs one; this is the one that mattered most
        remove = [remove.greedy.layers[layer] for layer in idle]
    names = [_name(model, layer, list(places)) for layer in remove]
    for name in names:
        if name not in places:
            raise unknown("highway layer", name, places)
    return names


def _name(model: nn.Module, layer: int | str, names: list[str]) -> str:
    if isinstance(layer, str):
        return layer
    if not isinstance(model, Network):
        raise UserError(f"layers of a module of your own are given by name, such as {names[:1]}, not {layer}")
    if not 0 <= layer < len(names):
        raise UserError(f"there is no highway layer {layer}: they are numbered 0 to {len(names) - 1}")
    return names[layer]


def _without(model: Model, gone: set[int]) -> Model:
    """A module of the user's own with other modules in the places of some."""
    memo: dict[int, object] = {}
    result = copy.deepcopy(model, memo)
    new: dict[int, nn.Module] = {}
    for _, module in units(model):
        own = {place.layer for place in _places(model).values() if place.module is module and place.number in gone}
        if own:
            new[id(memo[id(module)])] = _shorter(memo[id(module)], own)  # type: ignore[arg-type]
    for parent in list(result.modules()):
        for name, child in parent.named_children():
            if id(child) in new:
                setattr(parent, name, new[id(child)])
    return cast(Model, new.get(id(result), result))


def _shorter(module: HighwayModule, gone: set[int]) -> nn.Module:
    if isinstance(module, HighwayLayer):
        return carried(module)
    kept = [layer for layer in range(module.depth) if layer not in gone]
    if not kept:
        return Carried()
    module.weight = nn.Parameter(module.weight.detach()[kept], module.weight.requires_grad)
    module.bias = nn.Parameter(module.bias.detach()[kept], module.bias.requires_grad)
    module.depth = len(kept)
    return module
