"""Official files on disk: read whole and checked against their digest, or put in place whole or not at all."""

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from verydeep.data._entry import Official
from verydeep.errors import UserError
from verydeep.files import write_atomic


@dataclass(frozen=True)
class Verified:
    """An official file's bytes, digest checked, and where they were read."""

    path: Path
    data: bytes


def read_official(path: Path, official: Official) -> Verified:
    """Read a plain or gzipped file and refuse it unless its content is the official one.

    The whole file is hashed at every read: it costs a small part of loading a set, so
    remembering earlier checks would save little and could be wrong.
    """
    try:
        data = read_gzip(path, official.size) if path.suffix == ".gz" else _read_plain(path, official.size)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error
    check(data, official, str(path))
    return Verified(path, data)


def read_gzip(path: Path, limit: int) -> bytes:
    """Unpack a .gz of at most `limit` bytes; what is longer is refused before it fills the memory."""
    try:
        with gzip.open(path) as stream:
            data = stream.read(limit + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: not a whole gzip file ({error})") from error
    if len(data) > limit:
        raise UserError(f"{path}: unpacks to more than the {limit} bytes it should have")
    return data


def check(data: bytes, official: Official, where: str) -> None:
    """Refuse bytes that are not the official file's."""
    if len(data) != official.size:
        raise UserError(f"{where}: {len(data)} bytes, the official file has {official.size}")
    digest = hashlib.sha256(data).hexdigest()
    if digest != official.sha256:
        raise UserError(f"{where}: not the official file (SHA-256 {digest[:12]}..., not {official.sha256[:12]}...)")


def install(path: Path, data: bytes) -> None:
    """Put a new file in place; one that is there already is never replaced."""
    refuse_to_replace([path])
    write_atomic(path, data)


def refuse_to_replace(paths: Iterable[Path]) -> None:
    """A file that is not the official one belongs to somebody: it is for them to remove."""
    for path in paths:
        if os.path.lexists(path):
            raise UserError(f"{path}: is there already and is not replaced; move it away, then run this again")


def _read_plain(path: Path, size: int) -> bytes:
    actual = path.stat().st_size
    if actual != size:  # before reading: a wrong file may be huge
        raise UserError(f"{path}: {actual} bytes, the official file has {size}")
    return path.read_bytes()
