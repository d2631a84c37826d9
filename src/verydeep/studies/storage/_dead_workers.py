"""How a worker shows that it is alive, and how the trials of dead workers are found and released.

With a journal file, every worker holds a file lock for as long as it lives. The kernel releases the lock when the
process dies, so a dead worker is detected at once. With a server, workers send heartbeats; a worker that has missed
`MISSED_HEARTBEATS` of them counts as dead.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import optuna
from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
from optuna.storages import BaseStorage, fail_stale_trials
from optuna.trial import TrialState
from sqlalchemy.exc import SQLAlchemyError

from verydeep.errors import UserError
from verydeep.lock import exclusive_lock, is_held
from verydeep.studies.storage._store import quiet_optuna

MISSED_HEARTBEATS = 4


@contextmanager
def worker_lock(folder: Path, worker: str) -> Iterator[None]:
    """Hold the lock that shows that a worker is alive."""
    lock = _lock_file(folder, worker)
    with exclusive_lock(lock, f"{lock} is held by another process", wait=False):
        if not is_held(lock):
            raise UserError(f"{folder}: this disk has no file locks; keep the study on another, or on a server")
        yield
    # Its name is unique, so deleting it is safe. That of a killed worker stays, but nobody holds it.
    lock.unlink(missing_ok=True)


def release_unlocked(folder: Path, storage: BaseStorage, study: optuna.Study) -> None:
    """Release the running trials whose workers no longer hold their locks."""
    # Called while claiming: the worker of a running trial without a worker's name died right after claiming it.
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        worker = trial.user_attrs.get("worker")
        if worker is None or not is_held(_lock_file(folder, worker)):
            fail_attempt(storage, trial._trial_id)


def _lock_file(folder: Path, worker: str) -> Path:
    return folder / "workers" / f"{worker}.lock"


@contextmanager
def send_heartbeats(heartbeat: Callable[[], None], interval: float) -> Iterator[None]:
    """Send heartbeats from a thread, every `interval` seconds."""
    stop = threading.Event()

    def send() -> None:
        while not stop.wait(interval):
            with suppress(SQLAlchemyError, StorageInternalError):  # the server may be back for the next one
                heartbeat()

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def release_silent(study: optuna.Study) -> None:
    """Release the running trials whose workers have missed too many heartbeats."""
    with quiet_optuna():
        fail_stale_trials(study)


def fail_attempt(storage: BaseStorage, trial_id: int) -> None:
    """Mark an attempt as failed, unless it has ended in the meantime."""
    with suppress(UpdateFinishedTrialError):
        storage.set_trial_state_values(trial_id, TrialState.FAIL)
