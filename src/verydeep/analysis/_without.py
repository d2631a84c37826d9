"""Our networks without some of their highway layers: a smaller description, and the weights that are left."""

from collections.abc import Collection
from dataclasses import replace
from itertools import count
from typing import TypeVar

import torch
from torch import Tensor

from verydeep.errors import UserError
from verydeep.models import MLP, ConvNet, Highways, Network, ResidualNet, build
from verydeep.nn import HighwayConv2d, HighwayStack

N = TypeVar("N", bound=Network)


def smaller_mlp(model: MLP, gone: Collection[int]) -> MLP:
    """A fully connected network with a shorter stack."""
    assert isinstance(model.stack, HighwayStack)
    kept = [layer for layer in range(model.stack.depth) if layer not in gone]
    if not kept:
        raise UserError("a fully connected highway network keeps at least one highway layer; leave one out")
    # the gate bias must not follow from the new depth: it says what training started from
    config = replace(model.config, depth=1 + len(kept), gate_bias=model.stack.initial_gate_bias)
    weights = {name: value[kept] if name.startswith("stack.") else value for name, value in model.state_dict().items()}
    return _filled(MLP, model, config, weights)


def smaller_conv(model: ConvNet, gone: Collection[int]) -> ConvNet:
    """A convolutional network with fewer highway layers in its description."""
    numbers = count()
    layers = []
    for layer in model.config.layers:
        if isinstance(layer, Highways):
            layer = Highways(tuple(kernel for kernel in layer.kernels if next(numbers) not in gone))  # noqa: PLW2901
        if layer != Highways(()):
            layers.append(layer)
    numbers = count()
    kept = [module for module in model.layers if not (isinstance(module, HighwayConv2d) and next(numbers) in gone)]
    config = replace(model.config, layers=tuple(layers))
    with torch.device("meta"):
        names = [name for name, _ in build(config).layers.named_children()]  # type: ignore[union-attr]
    weights = {name: value for name, value in model.state_dict().items() if not name.startswith("layers.")}
    for name, module in zip(names, kept, strict=True):
        weights |= {f"layers.{name}.{key}": value for key, value in module.state_dict().items()}
    result = _filled(ConvNet, model, config, weights)
    result.recompute = model.recompute
    return result


def smaller_residual(model: ResidualNet, gone: Collection[int]) -> ResidualNet:
    """The 110-layer highway network with fewer blocks in its stages."""
    for number in sorted(gone):
        if getattr(model.blocks[number], "resize", None) is not None:
            raise UserError(f"blocks.{number} changes the shape and cannot be removed from a {type(model).__name__}")
    stages = model.config.stages
    of = [stage for stage, blocks in enumerate(stages) for _ in range(blocks)]
    left = tuple(sum(at == stage and n not in gone for n, at in enumerate(of)) for stage in range(len(stages)))
    kept = [number for number in range(len(model.blocks)) if number not in gone]
    weights = {name: value for name, value in model.state_dict().items() if not name.startswith("blocks.")}
    for new, old in enumerate(kept):
        weights |= {f"blocks.{new}.{key}": value for key, value in model.blocks[old].state_dict().items()}
    result = _filled(ResidualNet, model, replace(model.config, blocks=left), weights)
    result.recompute = model.recompute
    return result


def _filled(kind: type[N], model: Network, config: object, weights: dict[str, Tensor]) -> N:
    with torch.device("meta"):
        result = build(config)  # type: ignore[arg-type]
    assert isinstance(result, kind)
    result.load_state_dict({name: value.detach().clone() for name, value in weights.items()}, assign=True)
    return result.train(model.training)
