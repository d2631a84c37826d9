"""The worker processes of one machine: started, watched, and replaced when they are killed."""

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from verydeep.errors import UserError
from verydeep.files import make_folder
from verydeep.processes import python_command
from verydeep.search._budget import Budget
from verydeep.search._results import epochs_trained
from verydeep.search.study._open import HEARTBEAT
from verydeep.search.study._study import Study
from verydeep.training import child_environment, interruptible

_POLL_EVERY = 0.5  # seconds


@dataclass(frozen=True)
class Workers:
    """The number of workers of a search, and how they are started.

    Attributes:
        jobs: How many run at once; by default, one per core, or a single one on a GPU.
        storage: The PostgreSQL server's address, if one keeps the study.
        heartbeat: Seconds between heartbeats to it.
        root: Folder of the known datasets.

    Example:
        >>> from verydeep.search import Workers
        >>> Workers(jobs=2).jobs
        2
    """

    jobs: int | None = None
    storage: str | None = None
    heartbeat: int = HEARTBEAT
    root: Path | None = None


class WorkerProcess:
    """A worker in a fresh interpreter, because a fork of a process that runs threads may hang.

    It works until the study is complete. When its standard input is closed, also because this process has died, it
    saves its trial and ends.
    """

    def __init__(self, folder: Path, number: int, options: dict[str, object]) -> None:
        self.log = folder / "workers" / f"{socket.gethostname()}-{os.getpid()}-{number}.log"
        make_folder(self.log.parent)
        command = python_command("-m", "verydeep.search.worker._main", str(folder))
        with self.log.open("wb") as log:
            # In a separate session, so that Ctrl-C reaches only this process, which passes it on once.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=child_environment(),
                start_new_session=True,
            )
        self.pid = self._process.pid
        assert self._process.stdin is not None
        # Options go to standard input, not to the command line, which everyone on the machine can read: a storage's
        # address may have a password in it.
        with suppress(BrokenPipeError):  # it has died already, which `code` will show
            self._process.stdin.write(json.dumps(options).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def code(self) -> int | None:
        """The exit code: 0, 2 after a `UserError`, negative if it was killed; None while it runs."""
        return self._process.poll()

    @property
    def problem(self) -> str:
        """The last line of its log."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"its process ended with {self.code}"

    def stop(self) -> None:
        """Ask it to save its trial and end."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def kill(self) -> None:
        """End it now; its trial continues from the last checkpoint."""
        self._process.kill()
        self._process.wait()
        self.stop()


class WorkerPool:
    """A number of worker processes; one that was killed or told to stop by someone else is replaced."""

    def __init__(self, folder: Path, jobs: int, workers: Workers, budget: Budget) -> None:
        self.folder, self.jobs, self.workers, self.budget = folder, jobs, workers, budget
        self.began, self.started, self.ended = time.monotonic(), 0, 0
        self.running: list[WorkerProcess] = []
        self.problems: list[str] = []

    def run_until_done(self, study: Study, poll: Callable[[], None]) -> bool:
        """Run workers until all have ended, calling `poll` twice a second; return whether someone interrupted."""
        with interruptible() as interrupt:
            try:
                while self.running or (self._missing and not interrupt.requested):
                    while self._missing and not interrupt.requested:
                        self._start()
                    self._reap(study)
                    if interrupt.requested:
                        for process in self.running:
                            process.stop()
                    study.store.with_retry(poll)
                    time.sleep(_POLL_EVERY)
            finally:  # none are left, unless someone interrupts a second time
                for process in self.running:
                    process.kill()
        if self.problems and study.unfinished():
            raise UserError(f"a worker failed: {self.problems[0]} (logs are in {self.folder / 'workers'})")
        return interrupt.requested

    @property
    def _missing(self) -> bool:
        return len(self.running) + self.ended < self.jobs

    def _start(self) -> None:
        seconds = self.budget.seconds
        left = None if seconds is None else max(1.0, seconds - (time.monotonic() - self.began))
        options: dict[str, object] = {
            "storage": self.workers.storage,
            "heartbeat": self.workers.heartbeat,
            "root": None if self.workers.root is None else str(self.workers.root),
            "seconds": left,
            "epochs": self.budget.epochs,
        }
        self.running.append(WorkerProcess(self.folder, self.started, options))
        self.started += 1

    def _reap(self, study: Study) -> None:
        """Remove processes that have ended; those that failed or have nothing left to do are not replaced."""
        for process in [process for process in self.running if process.code is not None]:
            self.running.remove(process)
            process.stop()
            code = process.code or 0
            self.ended += code > 0 or (code == 0 and self._is_over(study))
            if code > 0:
                self.problems.append(process.problem)

    def _is_over(self, study: Study) -> bool:
        """Whether all trials are done or the budget is used up."""
        seconds, epochs = self.budget.seconds, self.budget.epochs
        if seconds is not None and time.monotonic() - self.began >= seconds:
            return True
        if not study.store.with_retry(study.unfinished):
            return True
        return epochs is not None and study.store.with_retry(lambda: epochs_trained(study)) >= epochs
