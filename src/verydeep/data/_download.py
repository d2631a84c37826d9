"""Download one archive over HTTP(S): mirrors in turn, resumed where it was cut, in place only when its digest is right.

Only the standard library's urllib, which takes proxies from the environment. What was received stays in `NAME.part`
until it is whole, so an interrupted download goes on where it stopped, even in another process or from another mirror.
"""

import hashlib
import http.client
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from verydeep.data._entry import Download
from verydeep.data._files import refuse_to_replace
from verydeep.data._http import CutError, ForeignBytesError, UselessError, first_byte, request
from verydeep.data._progress import bar
from verydeep.errors import UserError
from verydeep.files import cannot_write, make_folder

Advance = Callable[[int], None]
_CHUNK = 1 << 18


@dataclass(frozen=True)
class Patience:
    """How long to insist: seconds of silence, attempts in a row that bring nothing, first pause between attempts."""

    timeout: float = 15.0
    attempts: int = 4
    pause: float = 1.0


def download(item: Download, folder: Path, patience: Patience | None = None) -> Path:
    """Fetch the archive into the folder, from the first mirror that gives it whole."""
    target, part = folder / item.name, folder / f"{item.name}.part"
    make_folder(folder)
    refuse_to_replace([target])
    try:
        with bar(item.name, item.size) as advance:
            _from_mirrors(part, item, patience or Patience(), advance)
        return part.replace(target)
    except OSError as error:  # those of the network have been dealt with
        raise cannot_write(part, error) from error


def _from_mirrors(part: Path, item: Download, patience: Patience, advance: Advance) -> None:
    failures = []
    for url in item.mirrors:
        try:
            return _from_mirror(url, part, item, patience, advance)
        except UselessError as failure:
            failures.append(f"{url}: {failure}")
    raise UserError("\n".join(failures))


def _from_mirror(url: str, part: Path, item: Download, patience: Patience, advance: Advance) -> None:
    resumed = _size(part) > 0
    _insist(url, part, item, patience, advance)
    digest = _sha256(part)
    if digest == item.sha256:
        return
    part.unlink()
    if not resumed:
        raise UselessError(f"not the official file (SHA-256 {digest[:12]}..., not {item.sha256[:12]}...), discarded")
    _from_mirror(url, part, item, patience, advance)  # the older bytes may be at fault: once more, from the start


def _insist(url: str, part: Path, item: Download, patience: Patience, advance: Advance) -> None:
    """Request after request until the part is whole; only those that bring nothing count against patience."""
    stalled = 0
    while (before := _size(part)) < item.size:
        try:
            _receive(url, part, item, patience.timeout, advance)
        except CutError as failure:
            stalled = 0 if _size(part) > before else stalled + 1
            if stalled >= patience.attempts:
                raise UselessError(f"{failure} at byte {_size(part)} of {item.size}, gave up") from failure
            time.sleep(patience.pause * 2 ** max(stalled - 1, 0))


def _receive(url: str, part: Path, item: Download, timeout: float, advance: Advance) -> None:
    have = _size(part)
    try:
        with request(url, have, timeout) as response:
            start = first_byte(response, have, item.size)
            with _open(part, "ab" if start else "wb") as stream:
                _copy(response, stream, part, item.size - start, lambda done: advance(start + done))
    except ForeignBytesError:
        part.unlink(missing_ok=True)
        raise


def _copy(response: http.client.HTTPResponse, stream: IO[bytes], part: Path, size: int, advance: Advance) -> None:
    done = 0
    while done < size and (chunk := response.read1(min(_CHUNK, size - done))):
        _write(stream, chunk, part)
        done += len(chunk)
        advance(done)
    if done < size:
        raise CutError("connection cut")


def _write(stream: IO[bytes], chunk: bytes, part: Path) -> None:
    try:
        while chunk:  # a disk that is nearly full takes a little, and says no only to the next write
            chunk = chunk[stream.write(chunk) :]
    except OSError as error:
        raise cannot_write(part, error) from error


def _open(part: Path, mode: str) -> IO[bytes]:
    try:
        return open(part, mode, buffering=0)  # unbuffered: a full disk shows at the write, not at the closing
    except OSError as error:
        raise cannot_write(part, error) from error


def _size(part: Path) -> int:
    try:
        return part.stat().st_size
    except FileNotFoundError:
        return 0


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
