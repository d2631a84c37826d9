"""Writing to disk so that nothing is ever half there, and errors that say which file and why."""

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from verydeep.errors import UserError

_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_PARTIAL = ".partial"


def write_whole(path: Path, data: bytes | str | Callable[[Path], None]) -> None:
    """Write under a temporary name, then rename: nobody ever sees half a file.

    Args:
        path: Where the file will be, its folder made if need be.
        data: The content, or a function that writes it to the path it is given.
    """
    make_folder(path.parent)
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_PARTIAL)
        partial = Path(name)
        try:
            os.close(descriptor)
            if callable(data):
                data(partial)
            else:
                partial.write_bytes(data.encode() if isinstance(data, str) else data)
            with partial.open("rb") as stream:
                os.fsync(stream.fileno())
            partial.chmod(0o644)  # a temporary file is private; data is for everyone
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error


def partial_files(folder: Path) -> list[Path]:
    """What `write_whole` leaves when the process is killed in the middle of it."""
    return list(folder.glob(f".*{_PARTIAL}"))


def make_folder(folder: Path) -> None:
    """Create the folder, with its parents."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: no file system takes such a name
        raise cannot_write(folder, error) from error


def cannot_write(path: Path, error: Exception) -> UserError:
    """The error for a file that cannot be written: full, read-only, or not a folder."""
    reason = getattr(error, "strerror", None) or error
    if getattr(error, "errno", None) in _FULL:
        return UserError(f"{path}: the disk is full ({reason}); make room, or choose another folder")
    return UserError(f"{path}: cannot be written ({reason}); choose another folder")
