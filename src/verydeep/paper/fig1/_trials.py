"""The trials of Figure 1 on disk: for every network a file of JSON lines that others can plot again.

The first line says what was trained; every other is a trial with its settings and its curve so far. A trial that was
trained further has another line, and the later counts. A line is written at once, and one that was cut short is left
out, so a kill loses at most the trials that were being trained.
"""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from verydeep.config import from_dict, to_dict
from verydeep.errors import UserError
from verydeep.files import cannot_write, write_atomic
from verydeep.paper.fig1._protocol import SEED, Network, Protocol, settings_of
from verydeep.search import Settings
from verydeep.training import TrainConfig, environment


@dataclass(frozen=True)
class Trial:
    """One setting of one network.

    Attributes:
        trial: Its number.
        settings: What it trained with.
        status: `trained`, as far as it was trained, or `diverged`.
        seconds: Time of training, on one core.
        train_loss: Cross-entropy over the whole training set after each epoch.
        test_accuracy: On the test set, after each epoch.
    """

    trial: int
    settings: Settings
    status: str
    seconds: float
    train_loss: tuple[float, ...]
    test_accuracy: tuple[float, ...]

    @property
    def epochs(self) -> int:
        """How long it was trained."""
        return len(self.train_loss)

    def best(self, epochs: int | None = None) -> float:
        """The lowest loss within so many epochs; infinite for a run that diverged before their end, or at all."""
        if self.status == "diverged" and (epochs is None or self.epochs < epochs):
            return float("inf")
        return min(self.train_loss[:epochs], default=float("inf"))


class Results:
    """The file of one network."""

    def __init__(self, folder: Path, network: Network, protocol: Protocol) -> None:
        self.network, self.file = network, folder / f"{network.name}.jsonl"
        self.head = {"network": network.name, "seed": SEED, "config": to_dict(_unhurried(protocol, network))}
        self.trials: dict[int, Trial] = {}
        for line in self._lines():
            if "trial" in line:
                self.trials[line["trial"]] = _read(line, self.file)

    def add(self, trial: int, status: str, metrics: list[dict[str, Any]]) -> None:
        """Keep what a trial has reached."""
        lines = [line for line in metrics if line.get("train_loss") is not None]
        found = Trial(
            trial,
            settings_of(self.network, trial),
            status,
            round(metrics[-1]["seconds"], 1) if metrics else 0.0,
            tuple(float(f"{line['train_loss']:.5g}") for line in lines),
            tuple(line["test_accuracy"] for line in lines),
        )
        if not self.file.exists():
            write_atomic(self.file, json.dumps(self.head | {"environment": environment()}) + "\n")
        self._append(json.dumps(vars(found)) + "\n")
        self.trials[trial] = found

    def _lines(self) -> list[dict[str, Any]]:
        if not self.file.exists():
            return []
        whole = [line for line in self.file.read_text().splitlines(keepends=True) if line.endswith("\n")]
        lines = []
        for line in whole:
            try:
                lines.append(dict(json.loads(line)))
            except (ValueError, TypeError):
                continue  # cut short by a crash, and written over by the next line
        if not lines or not self._is_mine(lines[0]):
            raise UserError(f"{self.file} holds another study; move it away, or choose another --results")
        return lines

    def _is_mine(self, head: dict[str, Any]) -> bool:
        """Whether a first line is this study's; settings that came later have their defaults."""
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
                    line = line if file.read(1) == b"\n" else "\n" + line  # after one that was cut short
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise cannot_write(self.file, error) from error


def _unhurried(protocol: Protocol, network: Network) -> Any:  # noqa: ANN401
    """What a curve depends on; how long it is trained is no part of that."""
    return replace(protocol.base(network), epochs=1)


def _read(line: dict[str, Any], file: Path) -> Trial:
    values = {key: value for key, value in line.items() if key != "settings"}
    trial: Trial = from_dict(_Line, values, str(file)).trial_with(line.get("settings", {}))
    return trial


@dataclass(frozen=True)
class _Line:
    trial: int
    status: str
    seconds: float
    train_loss: tuple[float, ...]
    test_accuracy: tuple[float, ...]

    def trial_with(self, settings: Settings) -> Trial:
        return Trial(self.trial, settings, self.status, self.seconds, self.train_loss, self.test_accuracy)
