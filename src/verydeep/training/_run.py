"""A run is a folder.

config.json        the network's architecture, the resolved training configuration, what the data looked like
data.json          the data's name and classes, and how raw values are prepared for the network
environment.json   versions, machine, threads, git commit
metrics.jsonl      one line an epoch
model.safetensors  the weights: best on validation data, or the last where there is none
checkpoint/        where to continue from
summary.json       how it ended; not there while it has not
events.log         when it started, was resumed and stopped
"""

import json
import math
import os
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import nn

from verydeep.config import from_dict, to_dict
from verydeep.errors import UserError
from verydeep.files import cannot_write, make_folder, partial_files, read_json, write_atomic
from verydeep.models import Network, architecture, from_pretrained
from verydeep.training._config import TrainConfig
from verydeep.training._environment import environment

FORMAT = 1


class Run:
    """A training run on disk, finished or not."""

    def __init__(self, path: Path, config: TrainConfig) -> None:
        self.path, self.config = path, config

    @classmethod
    def create(cls, path: Path, config: TrainConfig, model: nn.Module, facts: dict[str, Any]) -> "Run":
        """Fill the folder; it is a run from the moment it has a config.json.

        Args:
            path: The folder; `require_free_folder` says which are refused.
            config: The resolved configuration.
            model: Its architecture is noted if it is one of our networks.
            facts: What else config.json says.
        """
        require_free_folder(path)
        make_folder(path)
        network = architecture(model) if isinstance(model, Network) else {"format": FORMAT, "architecture": None}
        depth = model.config.depth if isinstance(model, Network) else None
        size = {"depth": depth, "parameters": sum(p.numel() for p in model.parameters() if p.requires_grad)}
        saved = network | {"size": size, "training": to_dict(config)} | facts
        run = cls(path, config)
        run.keep_environment()
        write_atomic(path / "config.json", json.dumps(saved, indent=1) + "\n")
        return run

    @classmethod
    def load(cls, path: str | Path) -> "Run":
        """Open a run's folder."""
        path = Path(path)
        saved = read_json(path / "config.json", "expected a folder made by verydeep train")
        if saved.get("format") != FORMAT or "training" not in saved:
            raise UserError(f"{path / 'config.json'} is no run's configuration of format {FORMAT}; another version's?")
        for key, kind in (("architecture", str), ("own", list), ("data", dict), ("size", dict)):
            if saved.get(key) is not None and not isinstance(saved[key], kind):
                raise UserError(f"{path / 'config.json'}: '{key}' is not as verydeep wrote it; put it back as it was")
        return cls(path, from_dict(TrainConfig, saved["training"], f"{path / 'config.json'}: training"))

    @property
    def facts(self) -> dict[str, Any]:
        """All that config.json says."""
        return read_json(self.path / "config.json")

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """One dictionary for every epoch completed; a last line cut short by a crash is left out."""
        file = self.path / "metrics.jsonl"
        lines = file.read_text(errors="replace").splitlines(keepends=True) if file.exists() else []
        return [self._parse(line, number) for number, line in enumerate(lines, 1) if line.endswith("\n")]

    def _parse(self, line: str, number: int) -> dict[str, Any]:
        try:
            return dict(json.loads(line))
        except (ValueError, TypeError) as error:
            raise UserError(f"{self.path / 'metrics.jsonl'} line {number} is damaged; mend or remove it") from error

    @property
    def measured(self) -> dict[str, Any]:
        """The epoch whose weights the run keeps: best on validation data, or the last; empty if there is none."""
        metrics, summary = self.metrics, self.summary
        if summary is not None and summary["status"] == "diverged":
            metrics = metrics[:-1]  # a diverged epoch's are not kept
        elif summary is not None and summary["best"] is not None:
            return dict(summary["best"])
        return best_line(metrics) or (metrics[-1] if metrics else {})

    @property
    def summary(self) -> dict[str, Any] | None:
        """How the run ended, or None while it has not."""
        file = self.path / "summary.json"
        if not file.exists():
            return None
        summary = read_json(file)
        if not {"status", "epochs", "last", "best"} <= summary.keys():
            raise UserError(f"{file} is damaged; remove it, then: verydeep train --resume {self.path}")
        return summary

    @property
    def is_network(self) -> bool:
        """Whether the run trains one of our networks, and not a module of the user's own."""
        return self.facts.get("architecture") is not None

    @cached_property
    def model(self) -> Network:
        """The network with the run's weights, in evaluation mode."""
        if not self.is_network:
            raise UserError(f"{self.path} trained a module of your own: make it, and use load_weights(module, path)")
        if not (self.path / "model.safetensors").exists():
            if self.summary is not None:
                raise UserError(f"{self.path} has no weights: it diverged in its first epoch")
            raise UserError(f"{self.path} has no weights yet; continue it: verydeep train --resume {self.path}")
        return from_pretrained(self.path)

    def append(self, metrics: dict[str, Any]) -> None:
        """Add an epoch to metrics.jsonl."""
        self._append("metrics.jsonl", json.dumps(metrics) + "\n")

    def keep_epochs(self, epochs: int) -> None:
        """Drop metrics of epochs that will be trained again, because the checkpoint is older."""
        kept = self.metrics[:epochs]
        if (self.path / "metrics.jsonl").exists():
            write_atomic(self.path / "metrics.jsonl", "".join(json.dumps(line) + "\n" for line in kept))

    def remove_partial_files(self) -> None:
        """Remove what a killed process left half written."""
        for file in partial_files(self.path) + partial_files(self.path / "checkpoint"):
            file.unlink(missing_ok=True)

    def log(self, event: str) -> None:
        """Add a line to events.log."""
        self._append("events.log", f"{datetime.now().astimezone().isoformat(timespec='seconds')} {event}\n")

    def keep_environment(self) -> None:
        """Say what it is trained with."""
        write_atomic(self.path / "environment.json", json.dumps(environment(), indent=1) + "\n")

    def finish(self, summary: dict[str, Any]) -> None:
        """Say how the run ended."""
        write_atomic(self.path / "summary.json", json.dumps(summary, indent=1) + "\n")

    def _append(self, name: str, line: str) -> None:
        try:
            with (self.path / name).open("a") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise cannot_write(self.path / name, error) from error


def require_free_folder(path: Path) -> None:
    """A new run needs a folder that is not there, or empty but for what a start that was killed at once left."""
    if path.is_dir():
        left = {path / "lock", path / "data.json", path / "environment.json", *partial_files(path)}
        taken = any(file not in left for file in path.iterdir())
    else:
        taken = path.exists()
    if taken:
        raise UserError(f"{path} is there already; choose another with --folder, or continue it with --resume {path}")


def best_line(metrics: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The epoch of the highest validation accuracy, of equals the one of the lowest loss; None without validation."""
    lines = [line for line in metrics if line.get("valid_accuracy") is not None]
    return max(lines, key=lambda line: (line["valid_accuracy"], -_number(line.get("valid_loss"))), default=None)


def _number(loss: float | None) -> float:
    return math.inf if loss is None else loss
