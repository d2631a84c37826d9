"""Locks between processes.

The operating system locks the file; the file's existence means nothing. The lock is released when the process that
holds it ends, even if it is killed, so there are no stale locks. The empty lock file is not deleted, because a third
process could then lock a new file of the same name while the second still holds the old one.
"""

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from verydeep.errors import UserError
from verydeep.files import cannot_write, make_folder
from verydeep.terminal import echo

if sys.platform == "win32":
    import msvcrt

    def _acquire(stream: BinaryIO, wait: bool) -> None:
        while True:
            try:
                return msvcrt.locking(stream.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            except OSError as error:
                if not (wait and error.errno == errno.EDEADLK):  # LK_LOCK gives up after ten seconds
                    raise
else:
    import fcntl

    def _acquire(stream: BinaryIO, wait: bool) -> None:
        fcntl.flock(stream, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


_HELD = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}


@contextmanager
def exclusive_lock(path: Path, message: str, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock file at `path` while the context is active.

    Args:
        path: The lock file, which is not deleted.
        message: Printed while waiting for another process, unless empty; with `wait=False`, the text of the error.
        wait: Whether to wait if another process holds the lock; otherwise a `UserError` is raised.
    """
    make_folder(path.parent)
    try:
        stream = path.open("ab")
    except OSError as error:
        raise cannot_write(path, error) from error
    with stream:
        _hold(stream, message, wait)
        yield


def is_held(path: Path) -> bool:
    """Whether a process holds the lock file; this acquires the lock for a moment to find out."""
    try:
        stream = path.open(
            "r+b" if os.access(path, os.W_OK) else "rb"
        )  # NFS only locks files that are open for writing
    except OSError:
        return False
    with stream:
        try:
            _acquire(stream, wait=False)
        except OSError as error:
            return error.errno in _HELD and path.exists()
    return False


def _hold(stream: BinaryIO, message: str, wait: bool) -> None:
    try:
        _acquire(stream, wait=False)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return  # some network file systems have no locks; writes are still atomic
        if error.errno not in _HELD:
            raise
        if not wait:
            _hold_with_retries(stream, UserError(message))
            return
        if message:
            echo(message, file=sys.stderr)
        _acquire(stream, wait=True)


def _hold_with_retries(stream: BinaryIO, error: UserError) -> None:
    """Retry for a moment: another process may hold the lock only to answer `is_held`."""
    for _ in range(5):
        time.sleep(0.05)
        try:
            return _acquire(stream, wait=False)
        except OSError:
            continue
    raise error
