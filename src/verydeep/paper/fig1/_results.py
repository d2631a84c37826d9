"""The trials of Figure 1 on disk: one file of JSON lines per network.

The first line describes what was trained; every other line is a trial with its settings and its curve so far. A trial
that was trained further has another line, and the last one counts. Each line is flushed to disk as it is written and a
truncated line is ignored, so a kill loses at most the trials under way.
"""

import json
import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from verydeep.config import from_dict, to_dict
from verydeep.errors import UserError
from verydeep.files import cannot_write, read_text, write_atomic
from verydeep.paper.fig1._protocol import Fig1Network, Protocol, settings_of
from verydeep.studies import Settings
from verydeep.training import EpochMetrics, TrainConfig, environment


@dataclass(frozen=True)
class Fig1Trial:
    """One setting of one network.

    Attributes:
        trial: Its number.
        settings: Its values of the searched fields.
        status: `trained` or `diverged`.
        seconds: Training time on one core.
        train_loss: Cross-entropy over the whole training set after each epoch.
        test_accuracy: Accuracy on the test set after each epoch.
    """

    trial: int
    settings: Settings
    status: str
    seconds: float
    train_loss: tuple[float, ...]
    test_accuracy: tuple[float, ...]

    @property
    def epochs(self) -> int:
        """Number of epochs trained."""
        return len(self.train_loss)

    def best(self, epochs: int | None = None) -> float:
        """The lowest loss within `epochs`, by default within all; infinite if the run diverged within them."""
        if self.status == "diverged" and (epochs is None or self.epochs < epochs):
            return float("inf")
        return min(self.train_loss[:epochs], default=float("inf"))

    def has_reached(self, epoch: int) -> bool:
        """Whether it has been trained up to an epoch, or diverged before."""
        return self.epochs >= epoch or self.status == "diverged"

    def best_until(self, epoch: int) -> float | None:
        """The value that decides on the next stage; None if it diverged, at whatever epoch."""
        return None if self.status == "diverged" else self.best(epoch)

    @property
    def metrics(self) -> list[EpochMetrics]:
        """Its epochs as a run has them, as far as they are known; they take equal times."""
        pairs = enumerate(zip(self.train_loss, self.test_accuracy, strict=True), 1)
        seconds = self.seconds / max(1, self.epochs)
        return [
            EpochMetrics(epoch, train_loss=loss, test_accuracy=accuracy, seconds=seconds * epoch)
            for epoch, (loss, accuracy) in pairs
        ]


class Fig1Results:
    """The trials of one network, in its file."""

    def __init__(self, folder: Path, network: Fig1Network, protocol: Protocol) -> None:
        self.network, self.file = network, folder / f"{network.name}.jsonl"
        self.config = curve_config(protocol, network)
        self.head = {"network": network.name, "seed": network.search.options.seed, "config": to_dict(self.config)}
        self.read()

    def read(self) -> None:
        """Read the file again."""
        lines = [_read(line, self.file) for line in self._lines() if "trial" in line]
        self.trials = {trial.trial: trial for trial in lines}

    def lacks(self, trial: int, status: str, epochs: int) -> bool:
        """Whether it would be new that a trial has been trained that far, or has diverged."""
        known = self.trials.get(trial)
        return known is None or (known.status != "diverged" and (status == "diverged" or epochs > known.epochs))

    def add(self, trial: int, status: str, metrics: list[EpochMetrics]) -> None:
        """Record a trial as far as it is trained."""
        lines = [line.to_dict() for line in metrics if line.train_loss is not None and math.isfinite(line.train_loss)]
        record = Fig1Trial(
            trial,
            settings_of(self.network, trial),
            status,
            round(metrics[-1].seconds, 1) if metrics else 0.0,
            tuple(float(f"{line['train_loss']:.5g}") for line in lines),
            tuple(line["test_accuracy"] for line in lines),
        )
        if not self.file.exists():
            write_atomic(self.file, json.dumps(self.head | {"environment": environment()}) + "\n")
        self._append(json.dumps(vars(record)) + "\n")
        self.trials[trial] = record

    def _lines(self) -> list[dict[str, Any]]:
        if not self.file.exists():
            return []
        whole = [line for line in read_text(self.file).splitlines(keepends=True) if line.endswith("\n")]
        lines = []
        for line in whole:
            try:
                lines.append(dict(json.loads(line)))
            except (ValueError, TypeError):
                continue  # truncated by a crash; the next line follows it
        if not lines or not self._is_mine(lines[0]):
            raise UserError(f"{self.file} belongs to another study; rename or delete it, or choose another --results")
        return lines

    def _is_mine(self, head: dict[str, Any]) -> bool:
        """Whether a first line is that of this study; settings it does not know yet have their defaults."""
        try:
            config = to_dict(from_dict(TrainConfig, head.get("config", {}), str(self.file)))
        except UserError:
            return False
        return {"network": head.get("network"), "seed": head.get("seed"), "config": config} == self.head

    def _append(self, line: str) -> None:
        try:
            with self.file.open("ab+") as file:
                file.seek(0, os.SEEK_END)
                if file.tell():
                    file.seek(-1, os.SEEK_END)
                    line = line if file.read(1) == b"\n" else "\n" + line  # ends a truncated line
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise cannot_write(self.file, error) from error


def curve_config(protocol: Protocol, network: Fig1Network) -> TrainConfig:
    """What a curve depends on; how many of its epochs are trained is not part of it."""
    return replace(protocol.base(network), epochs=1)


def _read(line: dict[str, Any], file: Path) -> Fig1Trial:
    values = {key: value for key, value in line.items() if key != "settings"}
    trial: Fig1Trial = from_dict(_Line, values, str(file)).trial_with(line.get("settings", {}))
    return trial


@dataclass(frozen=True)
class _Line:
    trial: int
    status: str
    seconds: float
    train_loss: tuple[float, ...]
    test_accuracy: tuple[float, ...]

    def trial_with(self, settings: Settings) -> Fig1Trial:
        return Fig1Trial(self.trial, settings, self.status, self.seconds, self.train_loss, self.test_accuracy)
