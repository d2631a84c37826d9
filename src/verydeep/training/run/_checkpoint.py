"""Checkpoints: one safetensors file each, either complete or absent, with a checksum.

A checkpoint holds the model, the optimiser, the position, and the average of the weights where a run has one. It needs
no random state: what a step draws follows from seed, epoch and batch. The last two are kept, so that there is one to go
back to if the newest is damaged.
"""

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from verydeep.config import from_dict, to_dict
from verydeep.errors import UserError
from verydeep.files import require_regular, write_atomic
from verydeep.models import separate

_FORMAT = 1
_SAVED = 2
_NONE: Mapping[str, Tensor] = MappingProxyType({})


@dataclass
class Position:
    """How far training has come, and what it has counted so far.

    Attributes:
        epoch: Epochs completed.
        batch: Batches of the current epoch completed.
        sums: What the objective adds up over the current epoch's samples: the losses, then their scores.
        seconds: Time spent training.
        best: Best value of the metric by which epochs are selected, negative if lower is better; None before the first.
        best_epoch: Epochs completed when it was first reached.
        best_loss: The lowest validation loss among the epochs that reached it.
        diverged: Whether the loss has diverged, which ends training.
        in_kernels: Whether kernels compute whole steps, which are rounded in their own way. A run keeps to the way in
            which it began; those of earlier versions have none.
    """

    epoch: int = 0
    batch: int = 0
    sums: tuple[float, ...] = ()
    seconds: float = 0.0
    best: float | None = None
    best_epoch: int = 0
    best_loss: float | None = None
    diverged: bool = False
    in_kernels: bool = False


def save_checkpoint(
    folder: Path,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    position: Position,
    extra_tensors: Mapping[str, Tensor] = _NONE,
) -> None:
    """Write a new checkpoint, with any extra tensors that must be restored, then remove the oldest ones."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()} | dict(extra_tensors)
    state = optimiser.state_dict()["state"]
    for index, values in state.items():
        tensors |= {f"optim.{index}.{key}": torch.as_tensor(v) for key, v in values.items() if v is not None}
    tensors = separate(tensors)
    header = {"format": _FORMAT, "optimiser": type(optimiser).__name__, "position": to_dict(position)}
    header["checksum"] = _checksum(tensors, header["position"])
    path = folder / f"{position.epoch:06}-{position.batch:08}.safetensors"
    write_atomic(path, save(tensors, {"verydeep": json.dumps(header)}))
    remove_old(folder)


def remove_newer(folder: Path, position: Position) -> bool:
    """Remove checkpoints of a later position, which will be trained again; whether there were any."""
    newer = [path for path in _checkpoints(folder) if _epoch_and_batch(path) > [position.epoch, position.batch]]
    for path in newer:
        path.unlink(missing_ok=True)
    return bool(newer)


def has_checkpoint(folder: Path) -> bool:
    """Whether there is a checkpoint, intact or not."""
    return bool(_checkpoints(folder))


def remove_old(folder: Path) -> None:
    """Remove all but the newest checkpoints."""
    for old in _checkpoints(folder)[_SAVED:]:
        old.unlink(missing_ok=True)


def load_checkpoint(
    folder: Path,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    extra_tensors: Mapping[str, Tensor] = _NONE,
    measured: int | None = None,
) -> tuple[Position, dict[Path, str]]:
    """Restore the newest intact checkpoint; extra tensors are restored in place.

    Args:
        folder: The folder of the checkpoints.
        model: The network.
        optimiser: The optimiser.
        extra_tensors: What else must be restored.
        measured: The number of epochs whose metrics are known. An older checkpoint without later epochs is preferred,
            because training them again gives their metrics, too.

    Returns:
        Its position (the beginning if there is no checkpoint at all), and what is wrong with each newer one.
    """
    problems: dict[Path, str] = {}
    paths = _checkpoints(folder)
    if measured is not None:
        paths.sort(key=lambda path: _epoch_and_batch(path)[0] > measured)  # otherwise the newest first, as before
    for path in paths:
        try:
            position, tensors = _read(path, type(optimiser).__name__)
            _restore(model, optimiser, tensors, path)
            _restore_extra(extra_tensors, tensors, path)
        except UserError as error:
            problems[path] = str(error)
        else:
            return position, problems
    if paths:
        raise UserError(f"none of the checkpoints can be used, so start a new run: {'; '.join(problems.values())}")
    return Position(), problems


def set_aside(checkpoint: Path) -> Path:
    """Rename a damaged checkpoint, so that it is neither used nor counted among the newest ones."""
    return checkpoint.replace(checkpoint.with_suffix(".damaged"))


def _checkpoints(folder: Path) -> list[Path]:
    """All checkpoints, newest first; other files in the folder are ignored."""
    ours = [path for path in folder.glob("*.safetensors") if re.fullmatch(r"\d+-\d+", path.stem, re.ASCII)]
    return sorted(ours, key=_epoch_and_batch, reverse=True)


def _epoch_and_batch(checkpoint: Path) -> list[int]:
    return [int(number) for number in checkpoint.stem.split("-")]


def _read(path: Path, optimiser: str) -> tuple[Position, dict[str, Tensor]]:
    try:
        with safe_open(require_regular(path), "pt") as file:
            header = dict(json.loads((file.metadata() or {}).get("verydeep", "{}")))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
    except (OSError, SafetensorError, ValueError, TypeError) as error:
        raise UserError(f"{path} cannot be read ({error})") from error
    if header.get("format") != _FORMAT:
        raise UserError(f"{path} was written by another version (format {header.get('format')}, not {_FORMAT})")
    if header.get("optimiser") != optimiser:
        raise UserError(f"{path} holds the state of {header.get('optimiser')}, the configuration says {optimiser}")
    position = header.get("position")
    if header.get("checksum") != _checksum(tensors, position):
        raise UserError(f"{path} is damaged: its content does not match its checksum")
    return from_dict(Position, _current_form(position), str(path)), tensors


def _current_form(position: object) -> object:
    """A position as this version writes it; before 0.4.0, only classes were predicted."""
    if not isinstance(position, dict) or "correct" not in position:
        return position
    sums = [float(position.get("loss", 0.0)), float(position["correct"])]
    return {key: value for key, value in position.items() if key not in ("loss", "correct")} | {"sums": sums}


def _restore(model: nn.Module, optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor], path: Path) -> None:
    weights = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise UserError(f"{path} does not fit the model: {' '.join(str(error).split())[:200]}") from error
    state: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        if name.startswith("optim."):
            _, index, key = name.split(".", 2)
            state.setdefault(int(index), {})[key] = value
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def _restore_extra(extra_tensors: Mapping[str, Tensor], tensors: dict[str, Tensor], path: Path) -> None:
    for name, value in extra_tensors.items():
        if name not in tensors or tensors[name].shape != value.shape:
            raise UserError(f"{path} does not hold {name}, which the configuration needs")
        value.copy_(tensors[name])


def _checksum(tensors: dict[str, Tensor], position: object) -> int:
    total = zlib.crc32(json.dumps(position).encode())
    for name, tensor in sorted(tensors.items()):
        total = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), total)
        if tensor.numel():
            total = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, total)
    return total
