"""Pruning: the network without its idle layers, and a report of what that costs and gains."""

import copy
import statistics
import time
from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar, cast

import torch
from torch import nn

from verydeep.analysis._data import Data, as_batched, device_of, find_objective, first_samples, half_type
from verydeep.analysis._evaluate import evaluate_model
from verydeep.analysis.blocks._block import Block
from verydeep.analysis.blocks._blocks import HighwayModule, shadow_copy
from verydeep.analysis.lesions._lesion_results import PruneReport, Score
from verydeep.analysis.lesions._usage_results import DepthUsage
from verydeep.analysis.removal._remove_blocks import is_pretrained, with_stubs, without_layers
from verydeep.analysis.removal._remove_layers import (
    LayerLocation,
    layer_locations,
    remove_from_module,
    smaller_conv,
    smaller_mlp,
    smaller_residual,
)
from verydeep.cpu import cpu_settings
from verydeep.errors import UserError, unknown
from verydeep.models import MLP, ConvNet, Network, ResidualNet, multiply_adds
from verydeep.nn import Highway
from verydeep.objectives import Inputs, Objective, batch_length, call_model, first_of, move_inputs

Model = TypeVar("Model", bound=nn.Module)

_BATCH = 100
_REPEATS = 30


def prune(
    model: Model, remove: DepthUsage | Collection[int | str | Block], blocks: Sequence[Block] | None = None
) -> Model:
    """Copy a model without some layers; its outputs are those of the model with these layers closed.

    The outputs agree to the bit, because a closed layer copies its input. Networks of `verydeep.models` become smaller
    networks of the same kind. A model of transformers without whole layers has a configuration of fewer layers, so that
    `save_pretrained`, `from_pretrained` and `generate` work. In any other module, stacks are shortened and single
    blocks replaced by modules that return their input.

    Args:
        model: The model; it is not changed.
        remove: The layers to remove: those that `depth_usage` found idle, blocks, or the names of layers. Networks of
            `verydeep.models` also take numbers, as in `closed`.
        blocks: The blocks of the model that `find_blocks` found. They are needed for residual blocks of your own
            modules, and for parts of layers, unless `remove` contains blocks.

    Returns:
        The smaller model.

    Example:
        >>> from verydeep.analysis import prune
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> smaller = prune(model, {0, 2})  # without the first and the third highway layer
        >>> smaller.config.depth
        2
        >>> bool((smaller(data.test.x) == model(data.test.x, closed={0, 2})).all())
        True
    """
    locations = layer_locations(model)
    names = _names(model, remove, locations)
    if not names:
        return copy.deepcopy(model)
    removed = {locations[name].number for name in names if name in locations}
    others = [name for name in names if name not in locations]
    if others:
        return _without_blocks(model, removed, others, _known_blocks(remove, blocks))
    if isinstance(model, MLP):
        return cast(Model, smaller_mlp(model, removed))
    if isinstance(model, ConvNet):
        return cast(Model, smaller_conv(model, removed))
    if isinstance(model, ResidualNet):
        return cast(Model, smaller_residual(model, removed))
    return remove_from_module(model, removed)


def _without_blocks(model: Model, highways: set[int], names: list[str], blocks: dict[str, Block]) -> Model:
    """Remove blocks that are not highway layers, and perhaps some highway layers too."""
    if isinstance(model, ResidualNet):
        return cast(Model, smaller_residual(model, {int(name.rpartition(".")[2]) for name in names}))
    if is_pretrained(model) and not highways:
        shorter = without_layers(model, names)
        if shorter is not None:
            return shorter
    copied = remove_from_module(model, highways) if highways else copy.deepcopy(model)
    return with_stubs(copied, names, blocks)


def _known_blocks(remove: object, blocks: Sequence[Block] | None) -> dict[str, Block]:
    given = [] if isinstance(remove, DepthUsage) or not isinstance(remove, Iterable) else list(remove)
    return {block.name: block for block in (*(blocks or ()), *given) if isinstance(block, Block)}


def highway_layers(model: nn.Module) -> tuple[str, ...]:
    """The names of all highway layers, in the order in which modules were registered.

    Args:
        model: Any model.

    Example:
        >>> from verydeep.analysis import highway_layers
        >>> from verydeep.models import create_model
        >>> highway_layers(create_model("highway-mlp", depth=4))
        ('stack.0', 'stack.1', 'stack.2')
    """
    return tuple(name for name, at in layer_locations(model).items() if isinstance(at.module, HighwayModule))


def closable_layers(model: nn.Module) -> tuple[str, ...]:
    """The names of all highway layers and layers of residual stacks, in the order in which modules were registered."""
    return tuple(layer_locations(model))


def removable(model: nn.Module) -> tuple[str, ...]:
    """The names of the layers that can be removed: all except those that change the shape in a residual network.

    Args:
        model: Any model.

    Example:
        >>> from verydeep.analysis import removable
        >>> from verydeep.models import create_model
        >>> removable(create_model("highway-mlp", depth=4))
        ('stack.0', 'stack.1', 'stack.2')
    """
    fixed = isinstance(model, ResidualNet)
    return tuple(
        name
        for name, location in layer_locations(model).items()
        if not (fixed and isinstance(location.module, Highway) and location.module.resize is not None)
    )


def _names(
    model: nn.Module, remove: DepthUsage | Collection[int | str | Block], locations: dict[str, LayerLocation]
) -> list[str]:
    if isinstance(remove, DepthUsage):
        remove = [remove.greedy.layers[layer] for layer in remove.idle]
    if isinstance(model, ResidualNet) and not locations:
        numbered = [f"blocks.{number}" for number in range(len(model.blocks))]
    else:
        numbered = list(locations)
    names = list(dict.fromkeys(_name(model, layer, numbered) for layer in remove))
    modules = {name for name, _ in model.named_modules() if name}
    for name in names:
        if name not in locations and (name not in modules or (isinstance(model, Network) and name not in numbered)):
            raise unknown("highway layer" if locations else "block", name, locations or sorted(modules))
    return names


def _name(model: nn.Module, layer: int | str | Block, names: list[str]) -> str:
    if isinstance(layer, Block):
        return layer.name
    if isinstance(layer, str):
        return layer
    if not isinstance(model, Network):
        such_as = f", such as '{names[0]}'" if names else "; find_blocks lists them"
        raise UserError(f"the layers of a {type(model).__name__} are given by name{such_as}; got {layer!r}")
    if not 0 <= layer < len(names):
        kind = "highway layer" if model.highway_depth else "block"
        raise UserError(f"there is no {kind} {layer}: layers are numbered 0 to {len(names) - 1}")
    return names[layer]


@cpu_settings()
def prune_report(
    model: nn.Module,
    pruned: nn.Module,
    usage: DepthUsage,
    data: Data,
    test: Data | None = None,
    batch: int = _BATCH,
    *,
    objective: Objective | None = None,
) -> PruneReport:
    """Measure a network before and after pruning: scores, parameters, multiply-adds, latency.

    Args:
        model: The network before pruning.
        pruned: The network that `prune(model, usage)` returned.
        usage: Which layers were found idle.
        data: The data they were found on.
        test: Data that neither training nor pruning has used.
        batch: Samples in the batch whose latency is measured.
        objective: What is measured; by default, the task of a split. Without a task, whole numbers are classes and
            fractions the targets of a regression.

    Returns:
        The measurements before and after pruning.

    Example:
        >>> from verydeep.analysis import depth_usage, greedy_lesions, prune, prune_report
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> usage = depth_usage(greedy_lesions(model, data.train, "train"))
        >>> report = prune_report(model, prune(model, usage), usage, data.train, data.test)
        >>> report.layers
        ('stack.0', 'stack.1', 'stack.2')
    """
    both = shadow_copy(model).eval(), shadow_copy(pruned).eval()
    batched = as_batched(data, model, objective)
    measured = find_objective(batched, objective)
    x = move_inputs(first_samples(batched, batch, measured), device_of(model), half_type(model))
    parameters, work = [], []
    for network in both:
        parameters.append(sum(p.numel() for p in network.parameters() if p.requires_grad))
        work.append(multiply_adds(network, first_of(x, 1)))

    def score(samples: Data) -> tuple[Score, Score]:
        before, after = (evaluate_model(network, samples, objective=objective) for network in both)
        return before, after

    return PruneReport(
        kept=usage.kept,
        removed=usage.idle,
        layers=usage.greedy.layers,
        split=usage.greedy.split,
        tolerance=usage.tolerance,
        chosen=score(data),
        test=None if test is None else score(test),
        tuned=None,
        parameters=(parameters[0], parameters[1]),
        multiply_adds=(work[0], work[1]),
        latency=_latencies(both, x),
        latency_batch=batch_length(x),
    )


def _latencies(networks: tuple[nn.Module, nn.Module], x: Inputs) -> tuple[float, float]:
    """Median seconds per batch over interleaved rounds, so that other load on the machine affects both."""
    times: tuple[list[float], list[float]] = ([], [])
    with torch.no_grad():
        for _ in range(_REPEATS + 3):
            for network, taken in zip(networks, times, strict=True):
                start = time.perf_counter()
                call_model(network, x)
                taken.append(time.perf_counter() - start)
    first, second = (statistics.median(taken[3:]) for taken in times)  # the first three warm up
    return first, second
