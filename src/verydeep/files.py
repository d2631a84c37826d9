"""Atomic writing, checked reading of JSON and TOML, the user's cache folder, and errors that name file and reason.

What verydeep has written is never trusted when it is read again: a disk may have damaged it, and a folder may come from
someone else. Nothing but regular files is opened, so that no command waits for a pipe or reads a device for ever.
"""

import errno
import json
import os
import re
import stat
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import GenericAlias, MappingProxyType
from typing import Any
from uuid import uuid4

from verydeep.errors import UserError

if sys.platform == "win32":
    _flock = None
else:
    from fcntl import LOCK_EX, LOCK_NB, flock as _flock

_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_HELD = {errno.EACCES, errno.EAGAIN}
_PARTIAL = ".partial"
_STALE = 3600.0  # seconds after which a temporary file without a lock is abandoned
_LARGEST = 2**28  # bytes of a JSON or TOML file
_NAMES = {dict: "a table", list: "a list", str: "text", int: "a whole number", float: "a number", bool: "true or false"}
Kind = type | GenericAlias  # of an entry; list[str] is a list of texts
_NO_TYPES: Mapping[str, Kind | tuple[Kind, ...]] = MappingProxyType({})


def write_atomic(path: Path, data: bytes | str | Callable[[Path], None]) -> None:
    """Write under a temporary name, then rename, so that a partly written file is never visible, even after a crash.

    Temporary files that killed processes have left in the folder are removed.

    Args:
        path: The file; its folder is created if necessary.
        data: The content, or a function that writes it to the path passed to it.
    """
    make_folder(path.parent)
    if path.exists() and not path.is_file():  # a folder, or a device, which must not be replaced
        raise UserError(f"{path}: exists and is not a regular file; choose another name")
    try:
        remove_partial_files(path.parent)
        with _partial_file(path) as partial:
            if callable(data):
                data(partial)
            else:
                # file names need not be valid text; JSON reads these escapes back as the same name
                partial.write_bytes(data.encode(errors="backslashreplace") if isinstance(data, str) else data)
            with partial.open("rb") as stream:
                os.fsync(stream.fileno())
            partial.replace(path)
            _sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error


def append(path: Path, text: str) -> None:
    """Add text to the end of a file and wait until it is on the disk."""
    try:
        is_new = not path.exists()
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            _sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error


@contextmanager
def _partial_file(path: Path) -> Iterator[Path]:
    """Create a temporary file, locked as long as its process lives, and remove it at the end if it is still there."""
    while True:
        partial = path.with_name(f".{path.name}.{uuid4().hex}{_PARTIAL}")
        descriptor = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o666)
        if _is_locked(descriptor) is not True and partial.exists():  # otherwise another process took it for abandoned
            break
        os.close(descriptor)
    try:
        yield partial
    finally:
        os.close(descriptor)
        partial.unlink(missing_ok=True)


def _is_locked(descriptor: int) -> bool | None:
    """Try to lock an open file; whether another process has locked it, or None where there are no locks."""
    if _flock is None:
        return None
    try:
        _flock(descriptor, LOCK_EX | LOCK_NB)
    except OSError as error:
        return True if error.errno in _HELD else None
    return False


def partial_files(folder: Path) -> list[Path]:
    """Temporary files of `write_atomic`, of running and of killed processes."""
    return list(folder.glob(f".*{_PARTIAL}"))


def remove_partial_files(folder: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote to the folder."""
    for partial in partial_files(folder):
        with suppress(OSError):  # it has just been renamed, or belongs to someone else
            if _is_abandoned(partial):
                partial.unlink()


def _is_abandoned(partial: Path) -> bool:
    descriptor = os.open(partial, os.O_RDWR | getattr(os, "O_NONBLOCK", 0))
    try:
        locked = _is_locked(descriptor)
    finally:
        os.close(descriptor)
    return time.time() - partial.stat().st_mtime > _STALE if locked is None else not locked


def _sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk: a rename alone may be lost when the power fails."""
    with suppress(OSError):  # Windows opens no folders, and some file systems do not sync them
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def require_regular(path: Path) -> Path:
    """Return the path; raises a `UserError` for a pipe or a device, which might never end."""
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is {'a folder' if path.is_dir() else 'not a regular file'}; expected a file")
    return path


def read_json(path: Path, hint: str = "", types: Mapping[str, Kind | tuple[Kind, ...]] = _NO_TYPES) -> dict[str, Any]:
    """Read the JSON object in a file.

    Args:
        path: The file.
        hint: Added to the message if the file cannot be read.
        types: The types that entries must have unless they are missing or null, by their names; `size.depth` is the
            entry `depth` of the table `size`.

    Raises:
        UserError: It cannot be read, or an entry has another type.
    """
    values = _read(path, json.loads, "JSON", hint)
    for name, kind in types.items():
        check_entry(values, name, kind, str(path))
    return values


def check_entry(values: Mapping[str, Any], name: str, kind: Kind | tuple[Kind, ...], where: str) -> None:
    """Raise a `UserError` if an entry has another type; it may be missing or null, and a whole number is a float."""
    value: Any = values
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if value is not None and not any(_is(value, each) for each in kinds):
        expected = " or ".join(map(_name_of, kinds))
        raise UserError(f"{where} is damaged: expected {expected} as '{name}', got {str(value)[:40]!r}; restore it")


def _is(value: object, kind: Kind) -> bool:
    if isinstance(kind, GenericAlias):
        return type(value) is list and all(_is(item, kind.__args__[0]) for item in value)
    return type(value) is kind or (kind is float and type(value) is int)


def _name_of(kind: Kind) -> str:
    return "a list of texts" if isinstance(kind, GenericAlias) else _NAMES[kind]


def read_text(path: Path) -> str:
    """The text of a file, with a replacement for every byte that is not UTF-8."""
    try:
        return _content(path).decode("utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    return _read(path, tomllib.loads, "TOML", "")


def _read(path: Path, parse: Callable[[str], Any], kind: str, hint: str) -> dict[str, Any]:
    try:
        values = parse(_content(path).decode("utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}{hint and f'; {hint}'}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not {kind}: {error}") from error
    if not isinstance(values, dict):
        raise UserError(f"{path}: expected a {kind} table of keys, got {type(values).__name__}")
    return values


def _content(path: Path) -> bytes:
    """The content of a regular file, or of a pipe that a process writes to, as `<(command)` in a shell."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        mode, content = os.fstat(descriptor).st_mode, bytearray()
        if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if stat.S_ISFIFO(mode):
            first = file.read(1)  # None: nothing has been written yet
            if first == b"":
                raise OSError(errno.EPIPE, "it is a pipe that nothing writes to")
            content += first or b""
            os.set_blocking(descriptor, True)
        while len(content) <= _LARGEST and (more := file.read(2**20)):
            content += more
    if len(content) > _LARGEST:
        raise OSError(errno.EFBIG, f"it has more than {_LARGEST // 2**20} MB")
    return bytes(content)


def user_cache() -> Path:
    """The folder for datasets and compiled kernels, which can be fetched or built again.

    For a user without a home directory it is the null device, where nothing can be written.
    """
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "verydeep"
    try:
        home = Path.home()
    except RuntimeError:
        return Path(os.devnull)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "verydeep" / "Cache"
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "verydeep"


def make_folder(folder: Path) -> None:
    """Create a folder and its parents."""
    if re.match(r"[a-z]{2,}[a-z0-9+.-]*:/", str(folder), flags=re.IGNORECASE):  # a path has no double slash
        raise UserError("a URL cannot be used as a folder; the address of a database belongs in storage")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a name that no file system accepts
        raise cannot_write(folder, error) from error
    except RecursionError as error:
        raise UserError("a folder cannot have thousands of levels; choose another one") from error


def cannot_write(path: Path, error: Exception) -> UserError:
    """The error for a file that cannot be written, because the disk is full, read-only or similar."""
    reason = getattr(error, "strerror", None) or error
    if getattr(error, "errno", None) in _FULL:
        return UserError(f"{path}: the disk is full ({reason}); free some space, or choose another folder")
    return UserError(f"{path}: cannot be written ({reason}); choose another folder")
