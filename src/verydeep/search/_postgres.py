"""A study in a PostgreSQL server, for workers anywhere.

They send heartbeats; one who has been silent for four of them counts as dead.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

import optuna
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, RDBStorage, fail_stale_trials
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from verydeep.errors import UserError
from verydeep.redact import redact
from verydeep.search._storage import quiet_optuna

_SCHEMES = ("postgresql://", "postgres://", "postgresql+psycopg://")
_EXPECTED = "postgresql://USER@HOST:PORT/DATABASE"
_AMBIGUOUS = re.compile(r"@.*@|\?.*=.*@", flags=re.DOTALL)  # which @ ends the password?
_PLAIN = str.maketrans({"{": "{{", "}": "}}"})  # Optuna takes an address for a template
_SILENT_BEATS = 4
_PATIENCE = 300.0  # seconds
_PAUSE = 1.0
Result = TypeVar("Result")


class PostgresStore:
    """A server."""

    def __init__(self, url: str, heartbeat: int) -> None:
        if not url.startswith(_SCHEMES):
            raise UserError(f"--storage {redact(url)}: expected {_EXPECTED}")
        if _AMBIGUOUS.search(url):  # SQLAlchemy would take part of a password for the host, and errors would show it
            raise UserError(f"--storage {redact(url)}: write every @ but the one before the host as %40")
        self.heartbeat = heartbeat
        # A connection for each of the few calls of an epoch: none to keep, and none that breaks in between.
        arguments = {"connect_args": {"connect_timeout": 10}, "poolclass": NullPool}
        with storage_errors(), quiet_optuna():
            try:
                self.storage: BaseStorage = RDBStorage(
                    f"postgresql+psycopg://{url.split('://', 1)[1].translate(_PLAIN)}",
                    engine_kwargs=arguments,
                    heartbeat_interval=heartbeat,
                    grace_period=_SILENT_BEATS * heartbeat,
                )
            except ImportError as error:
                raise UserError("--storage needs an extra: pip install 'verydeep[postgres]'") from error
            except ValueError as error:  # a port that is no number
                raise UserError(f"--storage {redact(url)}: no address of a server; expected {_EXPECTED}") from error
            except RuntimeError as error:  # a schema of another version
                raise UserError(f"--storage {redact(url)}: {str(error).splitlines()[0]}") from error

    def patiently(self, call: Callable[[], Result]) -> Result:
        """A server that is started again, or a network that is gone for a moment, costs no worker its trial."""
        last = time.monotonic() + _PATIENCE
        while True:
            try:
                return call()
            except (SQLAlchemyError, StorageInternalError):
                if time.monotonic() > last:
                    raise
                time.sleep(_PAUSE)

    def claiming(self) -> AbstractContextManager[None]:
        return nullcontext()

    def working(self, worker: str) -> AbstractContextManager[None]:
        return nullcontext()

    def beat(self, trial_id: int) -> None:
        assert isinstance(self.storage, RDBStorage)
        self.storage.record_heartbeat(trial_id)

    @contextmanager
    def beating(self, trial_id: int) -> Iterator[None]:
        stop = threading.Event()
        thread = threading.Thread(target=self._beat_on, args=(trial_id, stop), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _beat_on(self, trial_id: int, stop: threading.Event) -> None:
        while not stop.wait(self.heartbeat):
            try:
                self.beat(trial_id)
            except (SQLAlchemyError, StorageInternalError):
                continue  # the server may be back at the next beat

    def release_dead(self, study: optuna.Study) -> None:
        with quiet_optuna():
            fail_stale_trials(study)


@contextmanager
def storage_errors() -> Iterator[None]:
    """A storage that is down or refuses us is something the user can mend."""
    try:
        yield
    except (SQLAlchemyError, StorageInternalError) as error:
        cause = getattr(error, "orig", None) or getattr(error.__cause__, "orig", None) or error
        reason = redact(*str(cause).split())[:300]
        raise UserError(f"the storage cannot be used: {reason}") from error
