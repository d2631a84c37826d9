"""What a study needs from its storage."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeVar

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.storages import BaseStorage

Result = TypeVar("Result")
HEARTBEAT = 15  # seconds


class Store(Protocol):
    """An Optuna storage, and how workers claim trials in it and show that they are alive."""

    storage: BaseStorage
    options: dict[str, object]  # how a worker on this machine opens it

    def with_retry(self, call: Callable[[], Result]) -> Result:
        """Call a function, again if the storage is unreachable for a while."""

    def claiming(self) -> AbstractContextManager[None]:
        """The context in which a trial is found and claimed, or groups are changed: one process at a time."""

    def working(self, worker: str) -> AbstractContextManager[None]:
        """Around the lifetime of a worker."""

    def heartbeat(self, trial_id: int) -> None:
        """Record once that the trial's worker is alive, before the trial is claimed."""

    def heartbeats(self, trial_id: int) -> AbstractContextManager[None]:
        """Around the work on a trial: its worker is alive."""

    def release_dead(self, study: optuna.Study) -> None:
        """Release the trials of dead workers, so that others can claim them."""


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Silence Optuna's log, and its warning that heartbeats are experimental."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        yield
