"""The worker processes of one machine: started, watched, and replaced when they are killed."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verydeep.errors import UserError
from verydeep.files import make_folder
from verydeep.processes import ChildProcess
from verydeep.studies._budget import Budget
from verydeep.studies._study import Study
from verydeep.studies.storage._postgres import STORAGE_ERRORS
from verydeep.studies.worker._worker import CRASHED
from verydeep.training import Interrupt, child_environment

_POLL_EVERY = 0.2  # seconds
_MOST_EARLY_DEATHS = 30  # one after another; a few may be bad luck


@dataclass(frozen=True)
class PoolOptions:
    """What the workers of a pool are told.

    Attributes:
        root: Folder of the known datasets.
        budget: When they stop.
        only: The names of groups or single trainings to train; None for all.
        tensorboard: Whether they write TensorBoard events.
    """

    root: str | Path | None
    budget: Budget
    only: Collection[str] | None
    tensorboard: bool


class WorkerProcess:
    """A worker on this machine; what it prints goes to a log file in the study's folder."""

    def __init__(self, study: Study, number: int, options: PoolOptions, seconds: float | None) -> None:
        self.log = study.folder / "workers" / f"{socket.gethostname()}-{os.getpid()}-{number}.log"
        make_folder(self.log.parent)
        with self.log.open("wb") as log:
            self.process = ChildProcess("-m", "verydeep.studies.worker", environment=child_environment(), errors=log)
        self.process.send(
            {
                "folder": str(study.folder),
                "store": study.store.options,
                "artifacts": None if study.artifacts is None else study.artifacts.folder,
                "root": None if options.root is None else str(options.root),
                "only": None if options.only is None else list(options.only),
                "tensorboard": options.tensorboard,
                "seconds": seconds,
                "epochs": options.budget.epochs,
            }
        )

    @property
    def problem(self) -> str:
        """The last line of its log."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"its process ended with {self.process.code}"


@contextmanager
def unless_interrupted(interrupt: Interrupt) -> Iterator[None]:
    """Ignore a storage that cannot be reached once someone has asked to stop: everything is saved without it."""
    try:
        yield
    except STORAGE_ERRORS:
        if not interrupt.requested:
            raise


class WorkerPool:
    """A number of worker processes; one that was killed or told to stop by someone else is replaced.

    Args:
        study: The study.
        jobs: The number of workers; 0 only waits for those of other machines.
        options: What the workers are told.

    Attributes:
        problems: What stopped workers that ended with an error.
    """

    def __init__(self, study: Study, jobs: int, options: PoolOptions) -> None:
        self.study, self.jobs, self.options = study, jobs, options
        self.began, self.started, self.ended, self.early_deaths = time.monotonic(), 0, 0, 0
        self.running: list[WorkerProcess] = []
        self.problems: list[str] = []

    def run_until_done(self, interrupt: Interrupt, poll: Callable[[list[dict[str, Any]]], None]) -> None:
        """Run workers until all have ended.

        Args:
            interrupt: When it is requested, workers save and end.
            poll: Called several times per second with the messages that workers have sent.
        """
        try:
            while self.running or (not interrupt.requested and self._has_more_to_do()):
                while self._missing and not interrupt.requested:
                    self._start()
                messages = self._reap(interrupt)
                if interrupt.requested:
                    for worker in self.running:
                        worker.process.stop()
                with unless_interrupted(interrupt):
                    poll(messages)
                time.sleep(_POLL_EVERY)
        finally:  # none are left, unless someone interrupts a second time
            for worker in self.running:
                worker.process.kill()

    def _has_more_to_do(self) -> bool:
        """Whether workers are to be started or, without any here, whether others are still at work."""
        return self._missing if self.jobs else not self._is_over()

    @property
    def _missing(self) -> bool:
        return len(self.running) + self.ended < self.jobs

    def _start(self) -> None:
        seconds = self.options.budget.seconds
        left = None if seconds is None else max(1.0, seconds - (time.monotonic() - self.began))
        self.running.append(WorkerProcess(self.study, self.started, self.options, left))
        self.started += 1

    def _reap(self, interrupt: Interrupt) -> list[dict[str, Any]]:
        """Remove processes that have ended, and return what all have sent.

        Those that failed or have nothing left to do are not replaced. One whose training crashed is: the training is
        given up after a few crashes, and the others remain.
        """
        messages: list[dict[str, Any]] = []
        for worker in list(self.running):
            code = worker.process.code
            messages += worker.process.received()
            if messages:
                self.early_deaths = 0
            if code is not None:
                self.running.remove(worker)
                worker.process.wait()
                self.early_deaths += code < 0
                if self.early_deaths >= _MOST_EARLY_DEATHS:
                    last = signal.Signals(-code).name
                    raise UserError(f"{_MOST_EARLY_DEATHS} workers died before they trained ({last}); out of memory?")
                failed = code > 0 and code != CRASHED
                with unless_interrupted(interrupt):
                    self.ended += failed or (code >= 0 and self._is_over())
                if failed:
                    self.problems.append(worker.problem)
        return messages

    def _is_over(self) -> bool:
        """Whether everything is trained or the budget is used up."""
        seconds, epochs = self.options.budget.seconds, self.options.budget.epochs
        if seconds is not None and time.monotonic() - self.began >= seconds:
            return True
        store = self.study.store
        is_open = store.with_retry(lambda: self.study.is_open)  # first, because groups are added before it is closed
        if not store.with_retry(lambda: self.study.unfinished(self.options.only)) and not is_open:
            return True
        return epochs is not None and store.with_retry(self.study.epochs_trained) >= epochs
