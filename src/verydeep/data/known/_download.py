"""Download one archive over HTTP(S): resume after interruptions, try mirrors in order, check the digest.

It uses only the standard library's urllib, which takes proxies from the environment. The bytes received so far stay in
`NAME.part` until the file is complete, so an interrupted download resumes where it stopped, even in another process or
from another mirror.
"""

import hashlib
import http.client
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from verydeep.data.known._catalogue import Download
from verydeep.data.known._http import MirrorFailed, PartialMismatch, RetryableError, first_byte, request
from verydeep.data.known._local_files import refuse_to_replace
from verydeep.errors import UserError
from verydeep.files import cannot_write, make_folder

Advance = Callable[[int], None]
_CHUNK = 1 << 18


@dataclass(frozen=True)
class RetryPolicy:
    """When to give up on a mirror.

    Attributes:
        timeout: Seconds without any data before an attempt fails.
        attempts: Consecutive attempts that bring no data before the mirror is given up.
        pause: Seconds before the second attempt; the pause doubles from attempt to attempt.
    """

    timeout: float = 15.0
    attempts: int = 4
    pause: float = 1.0


def download(item: Download, folder: Path, retry: RetryPolicy | None = None) -> Path:
    """Download the archive to the folder, from the first mirror that provides it completely."""
    target, part = folder / item.name, folder / f"{item.name}.part"
    make_folder(folder)
    refuse_to_replace([target])
    try:
        with _progress_bar(item.name, item.size) as advance:
            _from_mirrors(part, item, retry or RetryPolicy(), advance)
        with part.open("rb") as stream:  # after a loss of power, the name must not be there without the content
            os.fsync(stream.fileno())
        return part.replace(target)
    except OSError as error:  # network errors have been handled before
        raise cannot_write(part, error) from error


def _from_mirrors(part: Path, item: Download, retry: RetryPolicy, advance: Advance) -> None:
    failures = []
    for url in item.mirrors:
        try:
            return _from_mirror(url, part, item, retry, advance)
        except MirrorFailed as failure:
            failures.append(f"{url}: {failure}")
    raise UserError("\n".join(failures))


def _from_mirror(url: str, part: Path, item: Download, retry: RetryPolicy, advance: Advance) -> None:
    resumed = _size(part) > 0
    _complete(url, part, item, retry, advance)
    digest = _sha256(part)
    if digest == item.sha256:
        return
    part.unlink()
    if not resumed:
        raise MirrorFailed(f"not the official file (SHA-256 {digest[:12]}..., not {item.sha256[:12]}...), discarded")
    _from_mirror(url, part, item, retry, advance)  # the older bytes may be wrong: once more, from the start


def _complete(url: str, part: Path, item: Download, retry: RetryPolicy, advance: Advance) -> None:
    """Send requests until the part is complete; only those that bring no data count as failed attempts."""
    failed = 0
    while (before := _size(part)) < item.size:
        try:
            _resume(url, part, item, retry.timeout, advance)
        except RetryableError as failure:
            failed = 0 if _size(part) > before else failed + 1
            if failed >= retry.attempts:
                raise MirrorFailed(f"{failure} at byte {_size(part)} of {item.size}, gave up") from failure
            time.sleep(retry.pause * 2 ** max(failed - 1, 0))


def _resume(url: str, part: Path, item: Download, timeout: float, advance: Advance) -> None:
    """Request the bytes that the part does not have yet, and append them."""
    have = _size(part)
    try:
        with request(url, have, timeout) as response:
            start = first_byte(response, have, item.size)
            with _open(part, "ab" if start else "wb") as stream:
                _copy(response, stream, part, item.size - start, lambda done: advance(start + done))
    except PartialMismatch:
        part.unlink(missing_ok=True)
        raise


def _copy(response: http.client.HTTPResponse, stream: IO[bytes], part: Path, size: int, advance: Advance) -> None:
    done = 0
    while done < size and (chunk := response.read1(min(_CHUNK, size - done))):
        _write(stream, chunk, part)
        done += len(chunk)
        advance(done)
    if done < size:
        raise RetryableError("connection cut")


def _write(stream: IO[bytes], chunk: bytes, part: Path) -> None:
    try:
        while chunk:  # a nearly full disk may accept part of a chunk and fail only at the next write
            chunk = chunk[stream.write(chunk) :]
    except OSError as error:
        raise cannot_write(part, error) from error


def _open(part: Path, mode: str) -> IO[bytes]:
    try:
        return open(part, mode, buffering=0)  # unbuffered: a full disk is noticed at the write, not at the close
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


@contextmanager
def _progress_bar(description: str, total: int) -> Iterator[Advance]:
    """Show the bytes received so far on stderr if it is a terminal; call the function with their number."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=total)
        yield lambda done: progress.update(task, completed=done)
