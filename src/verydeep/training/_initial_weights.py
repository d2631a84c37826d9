"""Starting a training from the weights of another run, as far as they fit."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.files import read_json, require_regular
from verydeep.models import parse_tensors
from verydeep.training.run._pretrained import resolve_pretrained
from verydeep.training.run._seed_runs import holds_seeds

_MOST_NAMED = 4


@dataclass(frozen=True)
class InitialWeights:
    """The weights that a training started from.

    Attributes:
        source: The run's folder or the file, as the configuration names it.
        digest: SHA-256 of the file with the weights.
        loaded: The names of the parameters and buffers that were loaded.
        fresh: The names of those that were not: the source has none of the same name and shape.
        unused: The names of tensors of the source that have no place in the network.
    """

    source: str
    digest: str
    loaded: tuple[str, ...]
    fresh: tuple[str, ...]
    unused: tuple[str, ...]

    def describe(self) -> str:
        """What was loaded and what was not, in one line."""
        total = len(self.loaded) + len(self.fresh)
        number = f"{len(self.loaded)} of {total}" if self.fresh else f"all {total}"
        text = f"starting from the weights of {self.source}: {number} tensors"
        if self.fresh:
            text += f"; not loaded, so initialised from the seed: {_names(self.fresh)}"
        if self.unused:
            text += f"; not used: {_names(self.unused)}"
        return text


def load_initial_weights(model: nn.Module, source: str, classes: tuple[str, ...]) -> InitialWeights:
    """Copy all weights into a model that have the same name and shape there.

    The classifier of a run with other classes is left out: its outputs mean something else.

    Args:
        model: The model, on the CPU; it is changed in place.
        source: A run's folder, `pretrained:NAME`, or a safetensors file.
        classes: The classes of the data that the model is going to learn.

    Raises:
        UserError: There are no weights, or none of them fits.
    """
    file = _weights_file(source)
    try:
        content = require_regular(file).read_bytes()
        weights = parse_tensors(content, file)
    except UserError as error:
        raise UserError(f"init: {error}") from error
    except OSError as error:
        raise UserError(f"init: cannot read {file}: {error}") from error
    state = model.state_dict()
    new_classes = _classes_of(file.parent) not in (None, classes)
    loaded = [
        name
        for name, value in state.items()
        if name in weights and _fits(weights[name], value) and not (new_classes and name.startswith("classifier."))
    ]
    if not any(state[name].is_floating_point() for name in loaded):
        raise UserError(
            f"init: no tensor of {file} has the name and shape of one in the network: it has {_described(weights)}, "
            f"the network {_described(state)}"
        )
    with torch.no_grad():
        for name in loaded:
            state[name].copy_(weights[name])
    return InitialWeights(
        source,
        hashlib.sha256(content).hexdigest(),
        tuple(loaded),
        tuple(name for name in state if name not in loaded),
        tuple(name for name in weights if name not in state),
    )


def _weights_file(source: str) -> Path:
    path = resolve_pretrained(source)
    if not path.is_dir():
        return path
    if holds_seeds(path):
        raise UserError(f"init: {path} holds the runs of several seeds; choose one of them, such as {path}/seed-0")
    if not (path / "model.safetensors").exists():
        raise UserError(f"init: {path} has no model.safetensors; expected a run that has completed an epoch")
    return path / "model.safetensors"


def _classes_of(folder: Path) -> tuple[str, ...] | None:
    """The classes of a run; None if the folder is not a run."""
    file = folder / "data.json"
    names = read_json(file).get("classes") if file.exists() else None
    return tuple(names) if isinstance(names, list) else None


def _fits(saved: Tensor, value: Tensor) -> bool:
    return saved.shape == value.shape and saved.is_floating_point() == value.is_floating_point()


def _names(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _described(tensors: dict[str, Tensor]) -> str:
    return _names(tuple(f"{name} {tuple(value.shape)}" for name, value in tensors.items())) or "none"
