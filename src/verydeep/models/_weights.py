"""Saving and loading networks: weights as `model.safetensors`, the architecture as `config.json`, no pickle.

The file of the weights carries a digest of its tensors in its metadata, because a bit that has flipped on a disk would
otherwise only make the network a little worse. Files without one, of earlier versions or other programs, load too.
"""

import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor, nn

from verydeep.config import from_dict, to_dict
from verydeep.errors import UserError, unknown
from verydeep.files import read_json, require_regular, write_atomic
from verydeep.models._network import Network
from verydeep.models._registry import CONFIGS, build
from verydeep.models._zoo import Config

FORMAT = 1  # of config.json; increased when older versions of verydeep could not read the file
_DIGEST = "verydeep.sha256"  # the entry in the metadata of a safetensors file


def save_pretrained(model: Network, directory: str | Path) -> None:
    """Save a network for `from_pretrained`: `config.json` and `model.safetensors`, each written atomically.

    Args:
        model: A network of `create_model` or `build`.
        directory: The folder, which is created if necessary.

    Example:
        >>> from verydeep.models import create_model, from_pretrained, save_pretrained
        >>> save_pretrained(create_model("highway-mlp", depth=3, width=4), "saved")
        >>> from_pretrained("saved").config.depth
        3
    """
    if not isinstance(model, Network):
        raise UserError(f"{type(model).__name__} is not a verydeep network; save_weights takes any module")
    directory = Path(directory)
    save_weights(model, directory / "model.safetensors")
    write_atomic(directory / "config.json", json.dumps(architecture(model), indent=1) + "\n")


def save_weights(model: nn.Module, path: str | Path) -> None:
    """Save the parameters and buffers of a module as safetensors.

    Args:
        model: Any module.
        path: The file.

    Example:
        >>> from verydeep.models import load_weights, save_weights
        >>> from verydeep.nn import HighwayStack
        >>> save_weights(HighwayStack(4, 3), "stack.safetensors")
        >>> load_weights(HighwayStack(4, 3), "stack.safetensors")
    """
    save_tensors(model.state_dict(), path)


def save_tensors(tensors: Mapping[str, Tensor], path: str | Path) -> None:
    """Save tensors as `save_weights` saves those of a module."""
    separated = separate(dict(tensors))
    write_atomic(Path(path), save(separated, {_DIGEST: _digest(separated)}))


def separate(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors on the CPU without shared memory, which safetensors refuses; tied weights are copied."""
    separated = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    seen: set[int] = set()
    for name, value in separated.items():
        storage = value.untyped_storage().data_ptr()
        if storage in seen:
            separated[name] = value.clone()
        seen.add(storage)
    return separated


def architecture(model: Network) -> dict[str, Any]:
    """The content of config.json for a network."""
    return {"format": FORMAT, "architecture": type(model.config).__name__, "config": to_dict(model.config)}


def from_pretrained(directory: str | Path) -> Network:
    """Load a network that `save_pretrained` or a training run has saved, in evaluation mode.

    Args:
        directory: The folder.

    Raises:
        UserError: If the folder does not hold a network, or weights and architecture do not fit.

    Example:
        >>> from verydeep.models import create_model, from_pretrained, save_pretrained
        >>> save_pretrained(create_model("highway-mnist-16"), "saved")
        >>> from_pretrained("saved").highway_depth
        8
    """
    config = read_architecture(directory)
    with torch.device("meta"):
        model = build(config)
    load_weights(model, Path(directory) / "model.safetensors")
    return model.eval()


def read_architecture(directory: str | Path) -> Config:
    """Read the configuration of the network in a folder, for `build`."""
    path = Path(directory) / "config.json"
    saved = read_json(path, "expected a folder written by save_pretrained")
    if saved.get("format") != FORMAT:
        raise UserError(f"{path} is not a format-{FORMAT} model configuration; was it saved by another version?")
    name = saved.get("architecture")
    if not isinstance(name, str) or name not in CONFIGS:
        raise unknown(f"architecture in {path}", name, CONFIGS)
    return from_dict(CONFIGS[name], saved.get("config"), f"{path}: config")


def load_weights(model: nn.Module, path: str | Path) -> None:
    """Load weights that `save_weights` has saved into a module of the same shape.

    Args:
        model: Any module.
        path: The file.

    Raises:
        UserError: If weights are missing, unknown or of another shape; the message names them.

    Example:
        >>> from torch import nn
        >>> from verydeep.models import load_weights, save_weights
        >>> save_weights(nn.Linear(3, 2), "linear.safetensors")
        >>> load_weights(nn.Linear(3, 2), "linear.safetensors")
    """
    load_tensors(model, read_tensors(path), path)


def read_tensors(path: str | Path) -> dict[str, Tensor]:
    """Read a safetensors file; raises a `UserError` if it is damaged."""
    try:
        with safe_open(require_regular(Path(path)), "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
    except (OSError, SafetensorError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    _check_digest(tensors, metadata, path)
    return tensors


def parse_tensors(content: bytes, path: str | Path) -> dict[str, Tensor]:
    """Read the content of a safetensors file; `path` is named if it is damaged."""
    try:
        tensors = load(content)
        header = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])
    except (SafetensorError, ValueError, struct.error) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    _check_digest(tensors, header.get("__metadata__") or {}, path)
    return tensors


def _check_digest(tensors: Mapping[str, Tensor], metadata: Mapping[str, str], path: str | Path) -> None:
    if _DIGEST in metadata and metadata[_DIGEST] != _digest(tensors):
        raise UserError(f"{path} is damaged: its weights do not match their digest; restore the file, or train again")


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of the names, types, shapes and values."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        if tensor.numel():
            digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def load_tensors(model: nn.Module, weights: Mapping[str, Tensor], path: str | Path) -> None:
    """Load weights into a module, as `load_weights` does; the path is named if they do not fit."""
    expected = model.state_dict()
    problems = [f"missing {name}" for name in expected if name not in weights]
    problems += [f"unknown {name}" for name in weights if name not in expected]
    problems += [
        f"{name} is {tuple(weights[name].shape)} instead of {tuple(expected[name].shape)}"
        for name in expected
        if name in weights and weights[name].shape != expected[name].shape
    ]
    problems += [
        f"{name} has dtype {str(weights[name].dtype).removeprefix('torch.')}"
        for name in expected
        if name in weights and weights[name].is_floating_point() != expected[name].is_floating_point()
    ]
    if problems:
        more = f" and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise UserError(f"{path} does not fit the network: {'; '.join(problems[:5])}{more}")
    model.load_state_dict(weights, assign=any(value.is_meta for value in expected.values()))
