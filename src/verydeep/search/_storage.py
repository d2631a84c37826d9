"""Where a study is kept, who works on it, and who has died: here a journal file, a server in `_postgres.py`.

With a journal file every worker holds one of the kernel's locks as long as it lives, so a dead one is noticed at once;
claims are made under a lock as well.
"""

import os
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Protocol, TypeVar
from uuid import uuid4

import optuna
from optuna.exceptions import ExperimentalWarning, UpdateFinishedTrialError
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import BaseJournalBackend, JournalFileBackend
from optuna.storages.journal._file import BaseJournalFileLock
from optuna.trial import TrialState

from verydeep.errors import UserError
from verydeep.files import cannot_write, make_folder
from verydeep.lock import exclusive_lock, is_held

Result = TypeVar("Result")


class Store(Protocol):
    """What a study needs to know of its storage."""

    storage: BaseStorage

    def patiently(self, call: Callable[[], Result]) -> Result:
        """Call; again, if the storage is gone for a while."""

    def claiming(self) -> AbstractContextManager[None]:
        """Around looking for a trial and taking it."""

    def working(self, worker: str) -> AbstractContextManager[None]:
        """Around a worker's life."""

    def beat(self, trial_id: int) -> None:
        """Say that a trial's worker lives, before the trial is taken."""

    def beating(self, trial_id: int) -> AbstractContextManager[None]:
        """Around the work on a trial: its worker lives."""

    def release_dead(self, study: optuna.Study) -> None:
        """Fail the trials whose workers have died, so that others take their settings."""


class JournalStore:
    """A file, for the processes of one machine, or of several that share a disk with locks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_folder(folder)
        try:
            backend: BaseJournalBackend = JournalFileBackend(str(folder / "journal.log"), lock_obj=_KernelLock(folder))
            self.storage: BaseStorage = JournalStorage(backend)
        except OSError as error:
            raise cannot_write(folder / "journal.log", error) from error
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{folder / 'journal.log'} is damaged or no study's journal ({error})") from error

    def patiently(self, call: Callable[[], Result]) -> Result:
        """A file is there or it is not."""
        return call()

    def claiming(self) -> AbstractContextManager[None]:
        return exclusive_lock(self.folder / "claim.lock", "")

    @contextmanager
    def working(self, worker: str) -> Iterator[None]:
        lock = self._lock(worker)
        with exclusive_lock(lock, f"{lock} is held by another process", wait=False):
            if not is_held(lock):
                raise UserError(
                    f"{self.folder}: this disk has no file locks; keep the study elsewhere, or use --storage"
                )
            yield
        lock.unlink(missing_ok=True)  # a killed worker's stays, and says nothing but that it is not held

    def beat(self, trial_id: int) -> None:
        """A held lock says it all."""

    def beating(self, trial_id: int) -> AbstractContextManager[None]:
        return nullcontext()

    def release_dead(self, study: optuna.Study) -> None:
        # Called while claiming: a trial that runs without a worker's name was taken by one that died before it signed.
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            worker = trial.user_attrs.get("worker")
            if worker is None or not is_held(self._lock(worker)):
                fail(self.storage, trial._trial_id)

    def _lock(self, worker: str) -> Path:
        return self.folder / "workers" / f"{worker}.lock"


def fail(storage: BaseStorage, trial_id: int) -> None:
    """Give a trial up, unless it has ended meanwhile."""
    with suppress(UpdateFinishedTrialError):
        storage.set_trial_state_values(trial_id, TrialState.FAIL)


def worker_name() -> str:
    """A name no other worker has, and people can find."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:6]}"


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Optuna calls heartbeats experimental, and tells what it does."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        yield


class _KernelLock(BaseJournalFileLock):
    """For Optuna's journal: unlike its own locks, this one vanishes with the process that held it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.held = folder, ExitStack()

    def acquire(self) -> bool:
        self.held.enter_context(exclusive_lock(self.folder / "journal.lock", ""))
        _drop_cut_line(self.folder / "journal.log")
        return True

    def release(self) -> None:
        self.held.close()


def _drop_cut_line(journal: Path) -> None:
    """Who was killed while writing left half a line; Optuna would add the next one to it, and never read either."""
    with journal.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        if file.read(1) not in (b"\n", b""):
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
