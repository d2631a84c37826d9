"""One process at a time.

The kernel's own file locks, not a file whose existence is the lock: they vanish with the process that held them,
however it ended, so there is no stale lock to detect. The empty lock file stays: removing it would let a third
process lock a new file of the same name while the second still holds the old one.
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
    """Hold the lock file at `path`.

    Args:
        path: The lock file; it stays.
        message: What to say when another process holds it; nothing when empty, where waits are short.
        wait: Whether to wait then, or to raise a `UserError`.
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
    """Whether a process holds the lock file; to find out, it is taken for an instant."""
    try:
        stream = path.open("r+b" if os.access(path, os.W_OK) else "rb")  # NFS locks only what is open for writing
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
            return  # some network file systems; what is written is still written whole
        if error.errno not in _HELD:
            raise
        if not wait:
            _hold_soon(stream, UserError(message))
            return
        if message:
            print(message, file=sys.stderr)
        _acquire(stream, wait=True)


def _hold_soon(stream: BinaryIO, error: UserError) -> None:
    """Give `is_held` of another process time to let go."""
    for _ in range(5):
        time.sleep(0.05)
        try:
            return _acquire(stream, wait=False)
        except OSError:
            continue
    raise error
