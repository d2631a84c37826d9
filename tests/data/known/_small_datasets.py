"""Shared by the tests of known datasets: small datasets with true digests, archives, and a faulty web server."""

import gzip
import hashlib
import io
import tarfile
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import numpy as np

from verydeep.data.known._catalogue import DebianPackage, Download, KnownDataset, NpmPackage, OfficialFile
from verydeep.data.known._download import RetryPolicy

QUICK = RetryPolicy(timeout=5.0, attempts=3, pause=0.0)


def idx(array: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    header = bytes((0, 0, 8, array.ndim)) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return header + array.tobytes()


def targz(members: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return gzip.compress(out.getvalue(), mtime=0)


def official(name: str, data: bytes) -> OfficialFile:
    return OfficialFile(name, len(data), hashlib.sha256(data).hexdigest())


def offered(name: str, data: bytes, holds: tuple[str, ...], bases: tuple[str, ...]) -> Download:
    mirrors = tuple(f"{base}/{name}" for base in bases or ("http://127.0.0.1:1",))  # a port nobody listens at
    return Download(name, len(data), hashlib.sha256(data).hexdigest(), mirrors, holds)


class Small(NamedTuple):
    """A dataset of a few random images, with its files and archives by name."""

    known: KnownDataset
    files: dict[str, bytes]
    archives: dict[str, bytes]


def small_idx(*bases: str, npm: NpmPackage | None = None, debian: DebianPackage | None = None) -> Small:
    draw = np.random.default_rng(0)
    x = {"train": draw.integers(0, 256, (12, 5, 5), np.uint8), "t10k": draw.integers(0, 256, (6, 5, 5), np.uint8)}
    files = {}
    for part, images in x.items():
        files[f"{part}-images-idx3-ubyte"] = idx(images)
        files[f"{part}-labels-idx1-ubyte"] = idx(np.arange(len(images), dtype=np.uint8) % 3)
    officials = tuple(official(name, data) for name, data in files.items())
    archives = {f"{name}.gz": gzip.compress(data, mtime=0) for name, data in files.items()}
    downloads = tuple(offered(gz, data, (gz.removesuffix(".gz"),), bases) for gz, data in archives.items())
    known = KnownDataset("mnist", "MNIST/raw", (1, 5, 5), ("a", "b", "c"), officials[:2], officials[2:], downloads)
    return Small(replace(known, npm=npm, debian=debian), files, archives)


def small_cifar(*bases: str, labels: tuple[int, ...] = (3,), npm: NpmPackage | None = None) -> Small:
    draw = np.random.default_rng(1)
    files = {}
    for name in ("data_batch_1.bin", "data_batch_2.bin", "test_batch.bin"):
        rows = draw.integers(0, 256, (6, len(labels) + 48), np.uint8)
        rows[:, : len(labels)] = draw.integers(0, labels, (6, len(labels)))
        files[name] = rows.tobytes()
    officials = tuple(official(name, data) for name, data in files.items())
    packed = targz({f"cifar-10-batches-bin/{name}": data for name, data in files.items()})
    archives = {"cifar-10-binary.tar.gz": packed}
    downloads = (offered("cifar-10-binary.tar.gz", packed, tuple(files), bases),)
    classes = tuple(f"class {c}" for c in range(labels[-1]))
    known = KnownDataset(
        "cifar10", "cifar-10-batches-bin", (3, 4, 4), classes, officials[:2], officials[2:], downloads, labels
    )
    return Small(replace(known, npm=npm), files, archives)


class Web(ThreadingHTTPServer):
    """Serves `pages`; `plan` says how to misbehave, one word per request in turn, then behaves.

    Words: a status number; `cut:N` closes after N bytes; `no-range` ignores ranges, also before a cut;
    `hang` says nothing; `trickle` sends byte by byte; `other:TEXT` sends that instead; `range:TEXT` claims that
    content range.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages: dict[str, bytes] = {}
        self.plan: list[str] = []
        self.asked: list[tuple[str, str | None]] = []
        self.closing = threading.Event()
        self.address = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self.closing.set()
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Web

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append((self.path, asked))
        word = self.server.plan.pop(0) if self.server.plan else ""
        page = self.server.pages.get(self.path.rpartition("/")[2])
        if word.isdigit() or page is None:
            self.send_error(int(word or 404))
        elif word == "hang":
            self.server.closing.wait()
        elif word.startswith("other:"):
            self._send(200, word.removeprefix("other:").encode(), 0, word)
        else:
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and "no-range" not in word else 0
            if start >= len(page):
                self.send_error(416)
            else:
                self._send(206 if start else 200, page, start, word)

    def _send(self, status: int, page: bytes, start: int, word: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(page) - start))
        if status == 206:
            true = f"bytes {start}-{len(page) - 1}/{len(page)}"
            self.send_header("Content-Range", word.removeprefix("range:") if word.startswith("range:") else true)
        self.end_headers()
        body = page[start:]
        if "cut:" in word:
            body = body[: int(word.partition("cut:")[2])]
        if word == "trickle":
            for byte in body:
                self.wfile.write(bytes((byte,)))
                time.sleep(0.001)
        else:
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass
