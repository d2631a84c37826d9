"""Many trainings in parallel: worker processes that load the data once and train one job after another."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path

from verydeep.errors import UserError
from verydeep.processes import spawn
from verydeep.search import DatasetCache, Paused, train_trial
from verydeep.training import EpochMetrics, Interrupt, Interrupted, Run, TrainConfig

_PAUSE = 0.2  # seconds between looks at the clock
_MOST_DEATHS = 3


def _ignore(*_: object) -> None:
    """Do nothing with the metrics of an epoch."""


@dataclass(frozen=True)
class Job:
    """A run to train up to an epoch, in its folder."""

    config: TrainConfig
    path: Path
    epochs: int


@dataclass(frozen=True)
class Outcome:
    """How a job ended: `trained`, `diverged` or `killed`, and the metrics of its epochs."""

    status: str
    metrics: list[EpochMetrics]


class _Worker:
    """A process that trains one job after another."""

    def __init__(self, root: Path | None) -> None:
        self.connection, theirs = Pipe()
        self.process = spawn(_work, theirs, root)
        theirs.close()

    def stop(self) -> None:
        self.process.terminate()  # a training under way is saved first
        self.connection.close()  # the process may be blocked on sending a message
        self.process.join()


def train_jobs(
    next_job: Callable[[], Job | None],
    workers: int,
    root: Path | None,
    interrupt: Interrupt,
    seconds: float | None,
    epoch: Callable[[Job, EpochMetrics], None] = _ignore,
) -> Iterator[tuple[Job, Outcome]]:
    """Train until no job is left, the user interrupts or time is up; yields each job that has ended.

    Args:
        next_job: Returns a job that can be started now, or None.
        workers: Number of processes.
        root: Folder of the known datasets.
        interrupt: When it is requested, trainings under way are saved and left.
        seconds: Time limit; None for no limit.
        epoch: Called with the metrics of every epoch of a job, starting with those of earlier attempts.
    """
    began, deaths = time.monotonic(), dict[Path, int]()
    idle, busy = [_Worker(root) for _ in range(workers)], dict[_Worker, Job]()
    try:
        while not interrupt.requested and (seconds is None or time.monotonic() - began < seconds):
            while idle and (job := next_job()) is not None:
                busy[_send_job(idle.pop(), job, root)] = job
            if not busy:
                return
            ready = wait([worker.connection for worker in busy], _PAUSE)
            for worker in [worker for worker in busy if worker.connection in ready]:
                message = _receive(worker)
                if isinstance(message, EpochMetrics):
                    epoch(busy[worker], message)
                    continue
                job = busy.pop(worker)
                if message is None:  # it was killed: another worker resumes from its checkpoint
                    deaths[job.path] = deaths.get(job.path, 0) + 1
                    if deaths[job.path] >= _MOST_DEATHS:
                        raise UserError(f"{_MOST_DEATHS} processes died while training {job.path}; out of memory?")
                    idle.append(_Worker(root))
                    yield job, Outcome("killed", [])
                else:
                    idle.append(worker)
                    yield job, message
    finally:
        for worker in [*idle, *busy]:
            worker.stop()


def _send_job(worker: _Worker, job: Job, root: Path | None) -> _Worker:
    """Send a job and return the worker that has it: a new one, if this one was killed while it was idle."""
    try:
        worker.connection.send(job)
    except ConnectionError:
        worker.stop()
        worker = _Worker(root)
        worker.connection.send(job)
    return worker


def _receive(worker: _Worker) -> Outcome | EpochMetrics | None:
    """Receive the outcome of a job or the metrics of an epoch; None means that the process is dead."""
    try:
        message = worker.connection.recv()
    except (EOFError, ConnectionError):
        return None
    if isinstance(message, str):
        raise UserError(message)
    assert isinstance(message, Outcome | EpochMetrics)
    return message


def _work(connection: Connection, root: Path | None) -> None:
    """Train jobs from the connection until it closes; the main function of a worker process."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # Ctrl-C is for the parent, which asks every process once to stop
    data = DatasetCache(root)
    while True:
        try:
            try:
                connection.send(_train(connection.recv(), data, connection.send))
            except UserError as error:
                connection.send(str(error))
        except (EOFError, ConnectionError, Interrupted):  # the parent is gone, or asks to stop
            return


def _train(job: Job, data: DatasetCache, report_epoch: Callable[[EpochMetrics], None] = _ignore) -> Outcome:
    parent = os.getppid()

    def after_epoch(metrics: EpochMetrics) -> None:
        if os.getppid() != parent:
            raise EOFError
        report_epoch(metrics)
        if metrics.epoch >= job.epochs:
            raise Paused

    try:
        run = train_trial(job.config, job.path, data, after_epoch)
    except Paused:
        return Outcome("trained", Run.load(job.path).metrics)
    diverged = run.summary is not None and run.summary.status == "diverged"
    return Outcome("diverged" if diverged else "trained", run.metrics)
