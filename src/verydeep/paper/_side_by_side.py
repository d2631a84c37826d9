"""Networks trained side by side, each in its own process with one thread, for the demo."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from torch import Tensor

from verydeep.errors import UserError
from verydeep.processes import spawn
from verydeep.training import EpochMetrics, Interrupt, Interrupted, Position, Run, TrainConfig, TrainingProgress, train

_PAUSE = 0.1  # seconds between two messages from a process


@dataclass(frozen=True)
class Step:
    """Progress of a network: epochs done, and loss and accuracy of a recent batch."""

    name: str
    done: float
    loss: float
    accuracy: float


@dataclass(frozen=True)
class Epoch:
    """The metrics of a network after an epoch."""

    name: str
    metrics: EpochMetrics


def train_side_by_side(
    configs: dict[str, TrainConfig], folder: Path, root: Path | None, interrupt: Interrupt
) -> Iterator[Step | Epoch]:
    """Train every network in its own process; yields their steps and epochs as they happen.

    Args:
        configs: The configurations by network name, which also names the run in `folder`.
        folder: The folder that receives the runs.
        root: Folder of the known datasets.
        interrupt: When it is requested, all networks save and stop.
    """
    started = {name: _start(name, config, folder / name, root) for name, config in configs.items()}
    open_ends = {connection: name for name, (_, connection) in started.items()}
    asked = False
    try:
        while open_ends:
            if interrupt.requested and not asked:
                asked = True
                _ask_to_stop(started)
            for connection in wait(list(open_ends), _PAUSE):
                assert isinstance(connection, Connection)
                try:
                    message = connection.recv()
                except EOFError:  # the process has ended
                    _check_end(open_ends.pop(connection), started)
                    continue
                if isinstance(message, str):
                    raise UserError(message)
                yield message
    finally:
        if not asked:  # a second request would stop a process before it has saved
            _ask_to_stop(started)
        for process, _ in started.values():
            process.join()


class _Sender(TrainingProgress):
    """Sends progress to the parent process, a few times per second."""

    def __init__(self, name: str, connection: Connection) -> None:
        self.name, self.connection, self.sent = name, connection, 0.0

    def start(self, run: Run, position: Position, batches: int) -> None:
        self.batches = batches

    def step(self, position: Position, found: Tensor, samples: int, lr: float) -> None:
        now = time.monotonic()
        if now - self.sent >= _PAUSE:
            self.sent = now
            loss, right = (found.detach() / samples).tolist()
            self.connection.send(Step(self.name, position.epoch + position.batch / self.batches, loss, right))

    def epoch(self, metrics: EpochMetrics) -> None:
        self.connection.send(Epoch(self.name, metrics))


def _start(name: str, config: TrainConfig, path: Path, root: Path | None) -> tuple[SpawnProcess, Connection]:
    ours, theirs = Pipe(duplex=False)
    process = spawn(_train, name, config, path, root, theirs)
    theirs.close()
    return process, ours


def _train(name: str, config: TrainConfig, path: Path, root: Path | None, connection: Connection) -> None:
    """Train one network; the main function of each process."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # Ctrl-C is for the parent, which asks every process once to stop
    try:
        train(config, path, root=root, progress=_Sender(name, connection))
    except UserError as error:
        connection.send(str(error))
    except (Interrupted, BrokenPipeError):  # asked to stop, or the parent is gone
        pass


def _ask_to_stop(started: dict[str, tuple[SpawnProcess, Connection]]) -> None:
    for process, _ in started.values():
        process.terminate()


def _check_end(name: str, started: dict[str, tuple[SpawnProcess, Connection]]) -> None:
    process = started[name][0]
    process.join()
    if process.exitcode not in (0, -15):
        raise UserError(f"the process that trained the {name} network ended with code {process.exitcode}")
