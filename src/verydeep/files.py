"""Writing to disk so that nothing is ever half there, reading what was written, errors that say which file and why."""

import errno
import json
import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from verydeep.errors import UserError

_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_PARTIAL = ".partial"


def write_atomic(path: Path, data: bytes | str | Callable[[Path], None]) -> None:
    """Write under a temporary name, then rename: nobody ever sees half a file.

    Args:
        path: Where the file will be, its folder made if need be.
        data: The content, or a function that writes it to the path it is given.
    """
    make_folder(path.parent)
    if path.exists() and not path.is_file():  # a folder, or a device that must not be replaced by a file
        raise UserError(f"{path}: is there and is no ordinary file; choose another name")
    try:
        partial = path.with_name(f".{path.name}.{uuid4().hex}{_PARTIAL}")
        try:
            if callable(data):
                data(partial)
            else:
                # the name of a file need not be text; what this makes of one is what JSON reads as the same name
                partial.write_bytes(data.encode(errors="backslashreplace") if isinstance(data, str) else data)
            with partial.open("rb") as stream:
                os.fsync(stream.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error


def partial_files(folder: Path) -> list[Path]:
    """What `write_atomic` leaves when the process is killed in the middle of it."""
    return list(folder.glob(f".*{_PARTIAL}"))


def read_json(path: Path, hint: str = "") -> dict[str, Any]:
    """The JSON object in a file; `hint` says what should have been there."""
    return _read(path, json.loads, "JSON", hint)


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file."""
    return _read(path, tomllib.loads, "TOML", "")


def _read(path: Path, parse: Callable[[str], Any], kind: str, hint: str) -> dict[str, Any]:
    try:
        values = parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}{hint and f'; {hint}'}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not {kind}: {error}") from error
    if not isinstance(values, dict):
        raise UserError(f"{path}: expected a {kind} table of keys, got {type(values).__name__}")
    return values


def user_cache() -> Path:
    """The folder for data and compiled kernels that can be fetched or made again.

    A user without a home gets a path below the null device, where nothing can be written.
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
