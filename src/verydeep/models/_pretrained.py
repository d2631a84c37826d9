"""Networks on disk: `model.safetensors` for the weights, `config.json` for the architecture. Never a pickle."""

import json
import os
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from verydeep.config import from_dict, to_dict
from verydeep.errors import UserError, unknown
from verydeep.models._network import Network
from verydeep.models._registry import CONFIGS, build

_FORMAT = 1  # of config.json; raised when an older verydeep could not read what a newer one writes


def save_pretrained(model: Network, directory: str | Path) -> None:
    """Write a network so that `from_pretrained` gives it back; each file is complete or not there."""
    directory = Path(directory)
    config = {"format": _FORMAT, "architecture": type(model.config).__name__, "config": to_dict(model.config)}
    weights = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        partial = directory / f".model.safetensors.{os.getpid()}"
        save_file(weights, partial)
        partial.replace(directory / "model.safetensors")
        partial = directory / f".config.json.{os.getpid()}"
        partial.write_text(json.dumps(config, indent=1) + "\n")
        partial.replace(directory / "config.json")
    except OSError as error:
        raise UserError(f"cannot save the model in {directory}: {error.strerror or error}") from error


def from_pretrained(directory: str | Path) -> Network:
    """The network that `save_pretrained` wrote, in evaluation mode; weights that do not fit are refused by name."""
    directory = Path(directory)
    path = directory / "config.json"
    try:
        saved = json.loads(path.read_text())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; expected a folder made by save_pretrained") from error
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}") from error
    if not isinstance(saved, dict) or saved.get("format") != _FORMAT:
        raise UserError(f"{path} is not a model configuration of format {_FORMAT}; was it saved by another version?")
    if saved.get("architecture") not in CONFIGS:
        raise unknown(f"architecture in {path}", saved.get("architecture"), CONFIGS)
    config = from_dict(CONFIGS[saved["architecture"]], saved.get("config"), f"{path}: config")
    with torch.device("meta"):
        model = build(config)
    _load_weights(model, directory / "model.safetensors")
    return model.eval()


def _load_weights(model: Network, path: Path) -> None:
    try:
        weights = load_file(path)
    except (OSError, SafetensorError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    expected = model.state_dict()
    problems = [f"missing {name}" for name in expected if name not in weights]
    problems += [f"unknown {name}" for name in weights if name not in expected]
    problems += [
        f"{name} is {tuple(weights[name].shape)} instead of {tuple(expected[name].shape)}"
        for name in expected
        if name in weights and weights[name].shape != expected[name].shape
    ]
    if problems:
        more = f" and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise UserError(f"{path} does not fit its config.json: {'; '.join(problems[:5])}{more}")
    model.load_state_dict(weights, assign=True)
