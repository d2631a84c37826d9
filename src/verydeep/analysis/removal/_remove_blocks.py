"""Removing residual and named blocks: shorter configurations for models of transformers, stubs for any other module."""

import copy
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import nn

from verydeep.analysis.blocks._block import Block
from verydeep.errors import UserError

Module = TypeVar("Module", bound=nn.Module)

_COUNTS = ("num_hidden_layers", "num_layers", "num_decoder_layers", "encoder_layers", "decoder_layers")
_PLACES = ("layer_idx", "layer_id", "layer_number")  # attributes with a layer's number, by which caches find it
_PER_LAYER = re.compile("layer|types|block")  # names of configuration lists with one entry per layer

_OF_TRAINING = re.compile("^_|^training$|drop|gradient_checkpointing")  # attributes that evaluation does not need


class ClosedBlock(nn.Module):
    """Takes the place of a removed block and returns what the block returned when it was closed.

    Args:
        block: The block.
        module: The module that is removed; its plain attributes are kept, because the model may read them.
    """

    def __init__(self, block: Block, module: nn.Module) -> None:
        super().__init__()
        for name, value in vars(module).items():
            if not name.startswith("_") and isinstance(value, bool | int | float | str):
                setattr(self, name, value)
        self.block = block

    def forward(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - what the module took and returned
        return self.block.closed_output(args, kwargs)


def with_stubs(model: Module, names: Collection[str], blocks: Mapping[str, Block]) -> Module:
    """Replace modules of a model by stubs, in place, and return it.

    Args:
        model: The model, a copy of the user's.
        names: The names of the modules.
        blocks: The blocks of a model by their names.
    """
    for name in names:
        if name not in blocks:
            raise UserError(
                f"prune must know what '{name}' returns: give the blocks, prune(model, ..., blocks=find_blocks(...))"
            )
        parent, _, child = name.rpartition(".")
        owner = model.get_submodule(parent)
        owner._modules[child] = ClosedBlock(blocks[name], model.get_submodule(name))
    if is_pretrained(model):
        object.__setattr__(model, "save_pretrained", _refuse_to_save)
    return model


def _refuse_to_save(*_args: Any, **_options: Any) -> None:  # noqa: ANN401 - those of save_pretrained
    raise UserError(
        "this model lacks parts that its configuration cannot describe; from_pretrained would fill them with random "
        "weights. Save its state_dict() instead; to load that, prune the original model likewise"
    )


def is_pretrained(model: nn.Module) -> bool:
    """Whether a model is one of transformers, which is not imported for the question."""
    library = sys.modules.get("transformers")
    return library is not None and isinstance(model, library.PreTrainedModel)


def without_layers(model: Module, names: Collection[str]) -> Module | None:
    """A model of transformers without some of its layers; None if its configuration cannot describe that.

    The configuration says how many layers are left, and the others get new numbers, so that the model can be saved,
    loaded and used with a cache. A model that is built from the configuration has the same weights, which is checked.

    Args:
        model: The model; it is not changed.
        names: The names of whole layers.
    """
    removed: dict[str, set[int]] = {}
    for name in names:
        container, _, number = name.rpartition(".")
        if not number.isdigit() or not isinstance(model.get_submodule(container), nn.ModuleList | nn.Sequential):
            return None
        removed.setdefault(container, set()).add(int(number))
    result: Any = copy.deepcopy(model)
    length = {container: len(result.get_submodule(container)) for container in removed}
    kept = {c: [n for n in range(length[c]) if n not in numbers] for c, numbers in removed.items()}
    for container, numbers in kept.items():
        _keep(result, container, numbers)
    original = result.config
    for change in _changes(original, removed, length):
        result.config = copy.deepcopy(original)
        for path, key, value in change:
            _set(_part(result.config, path), key, value, kept, length)
        if _is_rebuilt(result, list(removed)):
            final = result.config
            result.config = original
            for path, key, value in change:
                _set(_part(original, path), key, value, kept, length)  # the modules share this object
            assert final.to_dict() == original.to_dict()
            return result  # type: ignore[no-any-return]
    return None


_Change = list[tuple[str, str, Any]]


def _keep(model: nn.Module, container: str, numbers: Sequence[int]) -> None:
    """Keep only some layers of a list, with new numbers."""
    layers = model.get_submodule(container)
    assert isinstance(layers, nn.ModuleList | nn.Sequential)
    left = [layers[number] for number in numbers]
    for new, (old, layer) in enumerate(zip(numbers, left, strict=True)):
        for module in layer.modules():
            for name in _PLACES:
                if getattr(module, name, None) == old:
                    setattr(module, name, new)
    parent, _, child = container.rpartition(".")
    shorter = nn.ModuleList(left) if isinstance(layers, nn.ModuleList) else nn.Sequential(*left)
    setattr(model.get_submodule(parent), child, shorter)


def _changes(config: Any, removed: Mapping[str, set[int]], length: Mapping[str, int]) -> Iterator[_Change]:  # noqa: ANN401
    """The ways to say in a configuration that layers are missing; which one is right shows when a model is built."""
    parts = ["", *(name for name in getattr(config, "sub_configs", {}) if hasattr(config, name))]
    for path in parts:
        part = _part(config, path)
        depths = getattr(part, "depths", None)
        if isinstance(depths, list | tuple):
            left = list(depths)
            for container, numbers in removed.items():
                stages = re.findall(r"\d+", container)
                if stages and int(stages[-1]) < len(left):
                    left[int(stages[-1])] -= len(numbers)
            yield [(path, "depths", left)]
        if len(removed) == 1:
            ((container, numbers),) = removed.items()
            for key in _COUNTS:
                if getattr(part, key, None) == length[container]:
                    yield [(path, key, length[container] - len(numbers))]


def _part(config: Any, path: str) -> Any:  # noqa: ANN401
    return getattr(config, path) if path else config


def _set(
    config: Any,  # noqa: ANN401
    key: str,
    value: Any,  # noqa: ANN401
    kept: Mapping[str, Sequence[int]],
    length: Mapping[str, int],
) -> None:
    """Set a number of layers, and shorten the lists that have one entry per layer."""
    if key != "depths":
        ((container, numbers),) = kept.items()
        for name, entries in list(vars(config).items()):
            if _PER_LAYER.search(name) and isinstance(entries, list) and len(entries) == length[container]:
                setattr(config, name, [entries[number] for number in numbers])
    setattr(config, key, value)


def _is_rebuilt(model: Any, containers: Sequence[str]) -> bool:  # noqa: ANN401
    """Whether a model that is built from the configuration has the same weights and layers as this one."""
    try:
        with torch.device("meta"):
            rebuilt = type(model)(copy.deepcopy(model.config))
    except (ValueError, TypeError, IndexError, RuntimeError, AttributeError):
        return False
    shapes = [{name: value.shape for name, value in each.state_dict().items()} for each in (model, rebuilt)]
    if shapes[0] != shapes[1]:
        return False
    if getattr(model.config, "scale_attn_by_inverse_layer_idx", False):  # a layer depends on its number
        return False
    modules = dict(rebuilt.named_modules())
    return all(
        _plain(module) == _plain(modules[name])
        for name, module in model.named_modules()
        if any(name.startswith(f"{container}.") for container in containers)
    )


def _plain(module: nn.Module) -> dict[str, Any]:
    """The attributes of a module that decide what it computes in evaluation."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, bool | int | float | str) and not _OF_TRAINING.search(name)
    }
