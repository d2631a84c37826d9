"""Atomic writing, reading of JSON and TOML, the user's cache folder, and errors that name the file and the reason."""

import errno
import json
import os
import re
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
    """Write under a temporary name, then rename, so that a partly written file is never visible.

    Args:
        path: The file; its folder is created if necessary.
        data: The content, or a function that writes it to the path passed to it.
    """
    make_folder(path.parent)
    if path.exists() and not path.is_file():  # a folder, or a device, which must not be replaced
        raise UserError(f"{path}: exists and is not a regular file; choose another name")
    try:
        partial = path.with_name(f".{path.name}.{uuid4().hex}{_PARTIAL}")
        try:
            if callable(data):
                data(partial)
            else:
                # file names need not be valid text; JSON reads these escapes back as the same name
                partial.write_bytes(data.encode(errors="backslashreplace") if isinstance(data, str) else data)
            with partial.open("rb") as stream:
                os.fsync(stream.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error


def partial_files(folder: Path) -> list[Path]:
    """Temporary files that `write_atomic` leaves behind if the process is killed."""
    return list(folder.glob(f".*{_PARTIAL}"))


def read_json(path: Path, hint: str = "") -> dict[str, Any]:
    """Read the JSON object in a file; `hint` is added to the message if the file cannot be read."""
    return _read(path, json.loads, "JSON", hint)


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
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


def cannot_write(path: Path, error: Exception) -> UserError:
    """The error for a file that cannot be written, because the disk is full, read-only or similar."""
    reason = getattr(error, "strerror", None) or error
    if getattr(error, "errno", None) in _FULL:
        return UserError(f"{path}: the disk is full ({reason}); free some space, or choose another folder")
    return UserError(f"{path}: cannot be written ({reason}); choose another folder")
