"""Trials trained side by side, each process with one thread and the data loaded once."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from verydeep.errors import UserError
from verydeep.processes import spawn
from verydeep.search import DatasetCache, Paused, train_trial
from verydeep.training import Interrupt, Interrupted, Run, TrainConfig

_PAUSE = 0.2  # seconds between looks at the clock
_MOST_DEATHS = 3


def _ignore(*_: object) -> None:
    """For those who do not want to know."""


@dataclass(frozen=True)
class Job:
    """A trial to train up to an epoch, in a run's folder."""

    config: TrainConfig
    path: Path
    epochs: int


@dataclass(frozen=True)
class Outcome:
    """What a trial has reached: `trained` or `diverged`, and the metrics of its epochs."""

    status: str
    metrics: list[dict[str, Any]]


class _Worker:
    """A process that trains one job after another."""

    def __init__(self, root: Path | None) -> None:
        self.connection, theirs = Pipe()
        self.process = spawn(_work, theirs, root)
        theirs.close()

    def stop(self) -> None:
        self.process.terminate()  # in the middle of a training: it is saved first
        self.connection.close()  # it may be waiting for a reader of what it says
        self.process.join()


def train_jobs(
    next_job: Callable[[], Job | None],
    workers: int,
    root: Path | None,
    interrupt: Interrupt,
    seconds: float | None,
    epoch: Callable[[Job, dict[str, Any]], None] = _ignore,
) -> Iterator[tuple[Job, Outcome]]:
    """Train until there is no job and none is under way, someone interrupts or time is over.

    Args:
        next_job: Gives a job that can be done now, or None.
        workers: How many processes.
        root: Where known datasets are kept.
        interrupt: When it is requested, trials under way are saved and left.
        seconds: How long.
        epoch: Is told the metrics of every epoch of a job, those of earlier attempts first.
    """
    began, deaths = time.monotonic(), dict[Path, int]()
    idle, busy = [_Worker(root) for _ in range(workers)], dict[_Worker, Job]()
    try:
        while not interrupt.requested and (seconds is None or time.monotonic() - began < seconds):
            while idle and (job := next_job()) is not None:
                busy[_give(idle.pop(), job, root)] = job
            if not busy:
                return
            ready = wait([worker.connection for worker in busy], _PAUSE)
            for worker in [worker for worker in busy if worker.connection in ready]:
                outcome = _answer(worker)
                if isinstance(outcome, dict):
                    epoch(busy[worker], outcome)
                    continue
                job = busy.pop(worker)
                if outcome is None:  # it was killed: another one goes on from its checkpoint
                    deaths[job.path] = deaths.get(job.path, 0) + 1
                    if deaths[job.path] >= _MOST_DEATHS:
                        raise UserError(f"{_MOST_DEATHS} processes died over {job.path}; out of memory?")
                    idle.append(_Worker(root))
                    yield job, Outcome("killed", [])
                else:
                    idle.append(worker)
                    yield job, outcome
    finally:
        for worker in [*idle, *busy]:
            worker.stop()


def _give(worker: _Worker, job: Job, root: Path | None) -> _Worker:
    """Who trains the job: another one, if this one was killed while it had nothing to do."""
    try:
        worker.connection.send(job)
    except ConnectionError:
        worker.stop()
        worker = _Worker(root)
        worker.connection.send(job)
    return worker


def _answer(worker: _Worker) -> Outcome | dict[str, Any] | None:
    """The end of a job, an epoch of it, or None from a process that is no more."""
    try:
        message = worker.connection.recv()
    except (EOFError, ConnectionError):
        return None
    if isinstance(message, str):
        raise UserError(message)
    assert isinstance(message, Outcome | dict)
    return message


def _work(connection: Connection, root: Path | None) -> None:
    """What each process does."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # Ctrl-C is for the parent, which asks every process once to stop
    data = DatasetCache(root)
    while True:
        try:
            try:
                connection.send(_train(connection.recv(), data, connection.send))
            except UserError as error:
                connection.send(str(error))
        except (EOFError, ConnectionError, Interrupted):  # without the parent there is nobody to train for
            return


def _train(job: Job, data: DatasetCache, tell: Callable[[dict[str, Any]], None] = _ignore) -> Outcome:
    parent = os.getppid()

    def watch(metrics: dict[str, Any]) -> None:
        if os.getppid() != parent:
            raise EOFError
        tell(metrics)
        if metrics["epoch"] >= job.epochs:
            raise Paused

    try:
        run = train_trial(job.config, job.path, data, watch)
    except Paused:
        return Outcome("trained", Run.load(job.path).metrics)
    diverged = run.summary is not None and run.summary["status"] == "diverged"
    return Outcome("diverged" if diverged else "trained", run.metrics)
