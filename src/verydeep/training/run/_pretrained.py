"""Trained networks that come with verydeep: `pretrained:NAME` wherever a run is expected.

Each is the folder of a finished run without its checkpoints. Commands write what they compute into a run's folder, so a
pretrained one is copied into the user's cache when it is first used.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from uuid import uuid4

from verydeep.errors import UserError, unknown
from verydeep.files import cannot_write, make_folder, user_cache

PREFIX = "pretrained:"
_PACKAGE = Path(__file__).parents[2]
_PLACES = (_PACKAGE.parents[1] / "pretrained", _PACKAGE / "_pretrained")  # in the repository, and in the wheel


def list_pretrained() -> list[str]:
    """The names of the networks that come with verydeep.

    Example:
        >>> from verydeep.training import list_pretrained
        >>> "highway50-mnist" in list_pretrained()
        True
    """
    return sorted(_folders())


def resolve_pretrained(path: str | Path) -> Path:
    """The folder of a run, which may be given as `pretrained:NAME`.

    Args:
        path: A folder, which is returned unchanged, or `pretrained:NAME`.

    Raises:
        UserError: There is no such network, or the user's cache cannot be written.
    """
    if not str(path).startswith(PREFIX):
        return Path(path)
    name, folders = str(path).removeprefix(PREFIX), _folders()
    if name not in folders:
        raise unknown("pretrained network", name, folders)
    return _cached(name, folders[name])


def _folders() -> dict[str, Path]:
    return {file.parent.name: file.parent for place in _PLACES for file in place.glob("*/config.json")}


def _cached(name: str, source: Path) -> Path:
    """A copy in the user's cache; that of other files has another name."""
    files = sorted(file for file in source.rglob("*") if file.is_file())
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files))
    copy = user_cache() / "pretrained" / f"{name}-{digest.hexdigest()[:8]}"
    if (copy / "config.json").exists():
        return copy
    make_folder(copy.parent)
    partial = copy.with_name(f".{copy.name}.{uuid4().hex}.partial")
    try:
        shutil.copytree(source, partial)
        partial.rename(copy)
    except OSError as error:
        if (copy / "config.json").exists():  # another process was faster
            return copy
        raise UserError(f"{cannot_write(copy, error)}; XDG_CACHE_HOME sets the folder of the cache") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return copy
