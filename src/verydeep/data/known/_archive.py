"""Read `.gz` files and named members of `.tar.gz` archives into memory, within limits.

Nothing is ever extracted to a path that an archive chose.
"""

import gzip
import io
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PureWindowsPath

from verydeep.errors import UserError

_OTHER_MEMBERS = 64 << 20  # bytes an archive may hold besides the wanted members
_MAX_MEMBERS = 10_000
_BROKEN = (tarfile.TarError, EOFError, zlib.error, OSError, ValueError, OverflowError)


def read_members(path: Path, wanted: Mapping[str, int]) -> dict[str, bytes]:
    """Read the wanted members of a .tar.gz.

    The whole archive is refused if any member, wanted or not, has an absolute path or `..` or is a link or a device,
    and if it unpacks to much more than the wanted members.

    Args:
        path: The archive.
        wanted: The largest size allowed for each member, by its path in the archive.
    """
    try:
        with gzip.open(path) as packed:
            limited = _LimitedStream(packed, sum(wanted.values()) + _OTHER_MEMBERS)
            with tarfile.open(fileobj=limited, mode="r|") as tar:
                found = _read(tar, wanted)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    except _BROKEN as error:
        raise UserError(f"{path}: not a complete .tar.gz ({error})") from error
    missing = [name for name in wanted if name not in found]
    if missing:
        raise UserError(f"{path}: contains no {', '.join(missing)}")
    return found


def read_gzip(path: Path, limit: int) -> bytes:
    """Unpack a `.gz` of at most `limit` bytes; longer content is refused before it fills the memory."""
    try:
        with gzip.open(path) as stream:
            data = stream.read(limit + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: not a complete gzip file ({error})") from error
    if len(data) > limit:
        raise UserError(f"{path}: unpacks to more than the expected {limit} bytes")
    return data


def _read(tar: tarfile.TarFile, wanted: Mapping[str, int]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for count, member in enumerate(tar):
        _refuse_unsafe(member, count)
        if member.name in wanted and member.isreg():
            if member.name in found:
                raise UserError(f"contains '{member.name}' twice")
            if member.size > wanted[member.name]:
                raise UserError(f"'{member.name}' has {member.size} bytes, expected at most {wanted[member.name]}")
            content = tar.extractfile(member)
            assert content is not None
            found[member.name] = content.read()
    return found


def _refuse_unsafe(member: tarfile.TarInfo, count: int) -> None:
    name = PureWindowsPath(member.name)  # understands both slashes and drives
    if name.anchor or ".." in name.parts:
        raise UserError(f"member '{member.name}' points outside the archive; nothing was read")
    if not (member.isreg() or member.isdir()):
        raise UserError(f"member '{member.name}' is a link or a device; nothing was read")
    if count >= _MAX_MEMBERS:
        raise UserError(f"more than {_MAX_MEMBERS} members; nothing was read")


class _LimitedStream(io.RawIOBase):
    """A stream that raises after `limit` bytes: headers can claim any size, and gzip packs 1000 to 1."""

    def __init__(self, stream: gzip.GzipFile, limit: int) -> None:
        self._stream, self._left = stream, limit

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise UserError("unpacks to much more than expected")
        return data
