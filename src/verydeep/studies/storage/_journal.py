"""A study in a journal file, for the processes of one machine, or of several that share a disk with file locks."""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import optuna
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.storages.journal._file import BaseJournalFileLock

from verydeep.errors import UserError, shorten
from verydeep.files import cannot_write, make_folder, require_regular
from verydeep.lock import exclusive_lock
from verydeep.studies.storage._dead_workers import release_unlocked, worker_lock

Result = TypeVar("Result")


class JournalStore:
    """A journal file in the study's folder; claims are made under a lock."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.options = folder, dict[str, object](storage=None)
        make_folder(folder)
        require_regular(folder / "journal.log")
        try:
            self.storage: BaseStorage = JournalStorage(_JournalFile(folder))
        except UserError:
            raise
        except OSError as error:
            raise cannot_write(folder / "journal.log", error) from error
        except Exception as error:  # Optuna asserts much about its lines, and an enumeration or a date may be anything
            raise _damaged(folder, error) from error

    def with_retry(self, call: Callable[[], Result]) -> Result:
        """Call without retries: they do not help with a file."""
        return call()

    def claiming(self) -> AbstractContextManager[None]:
        return exclusive_lock(self.folder / "claim.lock", "")

    def working(self, worker: str) -> AbstractContextManager[None]:
        return worker_lock(self.folder, worker)

    def heartbeat(self, trial_id: int) -> None:
        """Do nothing: the worker's lock shows that it is alive."""

    def heartbeats(self, trial_id: int) -> AbstractContextManager[None]:
        return nullcontext()

    def release_dead(self, study: optuna.Study) -> None:
        release_unlocked(self.folder, self.storage, study)


class _JournalFile(JournalFileBackend):
    """Optuna's journal; errors of the disk and damaged lines become one-line messages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        super().__init__(str(folder / "journal.log"), lock_obj=_KernelLock(folder))

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        with self._file_errors():
            yield from super().read_logs(log_number_from)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        with self._file_errors():
            super().append_logs(logs)

    @contextmanager
    def _file_errors(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise UserError(f"{self.folder}: its journal.log is gone; was the folder moved or removed?") from error
        except OSError as error:
            raise cannot_write(self.folder / "journal.log", error) from error
        except ValueError as error:  # a whole line that is not JSON, which Optuna notices when another one follows
            raise _damaged(self.folder, error) from error


def _damaged(folder: Path, error: Exception) -> UserError:
    return UserError(
        f"{folder / 'journal.log'} is damaged or is not a study's journal ({shorten(error)}); restore it, or choose "
        "another folder"
    )


class _KernelLock(BaseJournalFileLock):
    """A lock for Optuna's journal that, unlike its own locks, is released when the process that holds it dies."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.held = folder, ExitStack()

    def acquire(self) -> bool:
        with ExitStack() as held:  # released if the journal cannot be read: Optuna releases only what it has acquired
            held.enter_context(exclusive_lock(self.folder / "journal.lock", ""))
            _drop_incomplete_line(self.folder / "journal.log")
            self.held = held.pop_all()
        return True

    def release(self) -> None:
        self.held.close()


def _drop_incomplete_line(journal: Path) -> None:
    """Remove the incomplete last line of a killed writer; Optuna would append to it, and read neither line."""
    with journal.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        if file.read(1) not in (b"\n", b""):
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
