"""A study on a PostgreSQL server, for workers on any machine."""

import re
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from random import Random
from typing import TypeVar

import optuna
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, RDBStorage
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from verydeep.errors import UserError, install_command
from verydeep.redact import redact
from verydeep.studies.storage._dead_workers import MISSED_HEARTBEATS, release_silent, send_heartbeats
from verydeep.studies.storage._store import quiet_optuna
from verydeep.training import interruptible

_SCHEMES = ("postgresql://", "postgres://", "postgresql+psycopg://")
_EXPECTED = "postgresql://USER@HOST:PORT/DATABASE"
_AMBIGUOUS = re.compile(r"@.*@|\?.*=.*@", flags=re.DOTALL)  # which @ ends the password?
_ESCAPED = str.maketrans({"{": "{{", "}": "}}"})  # Optuna formats the address as a template
# In seconds and milliseconds; without these, a call during which the network fails would wait for hours.
_CONNECTION = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_RETRY_FOR = 300.0  # seconds
_RETRY_AFTER = 1.0
_CLAIM_PAUSE = 0.1  # seconds
_LONGEST_CLAIM_PAUSE = 5.0
# The number is that of our advisory lock; the time is how long a worker that hangs can keep it.
_LOCK = """SELECT pg_try_advisory_xact_lock(1986359929)
FROM set_config('idle_in_transaction_session_timeout', '60s', true)"""
_chance = Random()  # not the global one, whose state belongs to the program
Result = TypeVar("Result")


STORAGE_ERRORS = (SQLAlchemyError, StorageInternalError)
# What a server says that has no connection left for a moment, as when hundreds of workers start at once.
BUSY = ("too many clients", "too many connections", "remaining connection slots", "the database system is starting up")


class PostgresStore:
    """A study on a PostgreSQL server.

    Args:
        url: The server's address.
        heartbeat_interval: Seconds between a worker's heartbeats.
    """

    def __init__(self, url: str, heartbeat_interval: int) -> None:
        if not url.startswith(_SCHEMES):
            raise UserError(f"storage: expected {_EXPECTED}")  # the value may be a password
        if _AMBIGUOUS.search(url):  # SQLAlchemy would take part of a password for the host, and errors would show it
            raise UserError(f"storage {redact(url)}: write every @ except the one before the host as %40")
        self.heartbeat_interval = heartbeat_interval
        self.options: dict[str, object] = {"storage": url, "heartbeat": heartbeat_interval}
        # Each of the few calls per epoch opens a connection: none has to be kept alive, and none breaks in between.
        arguments = {"connect_args": _CONNECTION, "poolclass": NullPool}
        with storage_errors(), quiet_optuna():
            try:
                self.storage: BaseStorage = RDBStorage(
                    f"postgresql+psycopg://{url.split('://', 1)[1].translate(_ESCAPED)}",
                    engine_kwargs=arguments,
                    heartbeat_interval=heartbeat_interval,
                    grace_period=MISSED_HEARTBEATS * heartbeat_interval,
                )
            except ImportError as error:
                raise UserError(f"a PostgreSQL storage needs an extra: {install_command('postgres')}") from error
            except ValueError as error:  # a port that is not a number
                raise UserError(f"storage {redact(url)}: not a server's address; expected {_EXPECTED}") from error
            except RuntimeError as error:  # a schema of another version
                raise UserError(f"storage {redact(url)}: {str(error).splitlines()[0]}") from error

    def with_retry(self, call: Callable[[], Result]) -> Result:
        return with_retry(call)

    @contextmanager
    def claiming(self) -> Iterator[None]:
        """Let one worker at a time claim: of many that start at once, all would try for the same trainings.

        The lock ends with the transaction, and so with the worker's connection, or when a worker hangs. Waiting workers
        keep no connection, of which a server has few.
        """
        pause = _CLAIM_PAUSE
        with interruptible() as interrupt:
            while (connection := self._lock()) is None:
                if interrupt.requested:
                    raise StorageInternalError("stopped while other workers were claiming")
                time.sleep(_chance.uniform(0, pause))
                pause = min(2 * pause, _LONGEST_CLAIM_PAUSE)
        try:
            yield
        finally:
            with suppress(SQLAlchemyError):  # what was claimed is claimed, whatever happens to the lock
                connection.rollback()
            connection.close()

    def _lock(self) -> Connection | None:
        """A connection that holds the lock for claims; None if another worker has it."""
        assert isinstance(self.storage, RDBStorage)
        connection = self.storage.engine.connect()
        try:
            if connection.execute(text(_LOCK)).scalar_one():
                return connection
        except SQLAlchemyError:
            connection.close()
            raise
        connection.close()
        return None

    def working(self, worker: str) -> AbstractContextManager[None]:
        return nullcontext()

    def heartbeat(self, trial_id: int) -> None:
        assert isinstance(self.storage, RDBStorage)
        self.storage.record_heartbeat(trial_id)

    def heartbeats(self, trial_id: int) -> AbstractContextManager[None]:
        return send_heartbeats(partial(self.heartbeat, trial_id), self.heartbeat_interval)

    def release_dead(self, study: optuna.Study) -> None:
        release_silent(study)


def with_retry(call: Callable[[], Result], reasons: Collection[str] = ("",)) -> Result:
    """Call a function, again for a few minutes if the server restarts or the network fails, until interrupted.

    Args:
        call: The function.
        reasons: Parts of the messages after which it is called again; by default, all.
    """
    last = time.monotonic() + _RETRY_FOR
    with interruptible() as interrupt:
        while True:
            try:
                return call()
            except (*STORAGE_ERRORS, UserError) as error:
                is_down = isinstance(error, STORAGE_ERRORS) or isinstance(error.__cause__, STORAGE_ERRORS)
                is_down = is_down and any(reason in str(error) for reason in reasons)
                if not is_down or interrupt.requested or time.monotonic() > last:
                    raise
                time.sleep(_RETRY_AFTER)


@contextmanager
def storage_errors() -> Iterator[None]:
    """Turn errors of a storage that is down or refuses the connection into one-line messages."""
    try:
        yield
    except STORAGE_ERRORS as error:
        cause = getattr(error, "orig", None) or getattr(error.__cause__, "orig", None) or error
        reason = redact(*str(cause).split())[:300]
        raise UserError(f"the storage cannot be used: {reason}") from error
