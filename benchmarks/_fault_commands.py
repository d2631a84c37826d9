"""Commands that are disturbed: killed, with failing file operations, with torn files, and two at once in one folder.

Every command works in a folder of its own, which is made anew for every trial and always has the same path. A command
is disturbed once, then repeated without disturbance; it must continue, and leave the same as one that never was
disturbed.
"""

import errno
import gzip
import hashlib
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from _fault_outcomes import Outcome, constant, differences, ending, outcome
from _file_faults import FileFaults
from _warm import Ended, end_with_parent, import_as, run_forked

NETWORK = ["--depth", "3", "--width", "4", "--epochs", "2", "--threads", "1", "--checkpoint-every", "0"]
SEARCH = """
epochs = 2
checkpoint_every = 0.0
data = { source = "table.csv", validation = 0.2 }
model = { width = 4, depth = 3 }
[search]
trials = 2
[search.space]
optim.lr = { low = 0.01, high = 1.0, log = true }
"""
SLOWEST = 120.0  # seconds; more is a hang
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True)
class Command:
    """A command that can be repeated until it has succeeded.

    Attributes:
        arguments: Its arguments.
        before: The command that makes what it needs.
        first: What must happen in its process before it.
    """

    arguments: tuple[str, ...]
    before: tuple[str, ...] = ()
    first: Callable[[], None] | None = None


PORT = [1]  # where `serve_archives` listens
TRAIN = ("train", "table.csv", *NETWORK, "--folder", "run", "--continue", "--quiet")
COMMANDS = {
    "train": Command(TRAIN),
    "seeds": Command(
        ("train", "table.csv", *NETWORK, "--seeds", "2", "--jobs", "1", "--folder", "run", "--continue", "--quiet")
    ),
    "search": Command(("search", "search.toml", "--study", "search", "--jobs", "1", "--quiet")),
    "reproduce": Command(
        (
            *("reproduce", "table1", "--quick", "--only", "highway-mnist-16", "--seeds", "1", "--jobs", "1"),
            *("--results", "results", "--runs", "runs"),
        )
    ),
    "depth": Command(
        (
            *("depth", "table.csv", "--total-epochs", "2400", "--most", "2", "--width", "4", "--jobs", "1"),
            *("--folder", "depth", "--quiet"),
        )
    ),
    "analyze": Command(("analyze", "run", "--threads", "1"), TRAIN),
    "prune": Command(("prune", "run", "--threads", "1", "--tolerance", "50%"), TRAIN),
    "report": Command(("report", "run", "--threads", "1"), TRAIN),
    "explore": Command(("explore", "run", "--no-open", "--threads", "1"), TRAIN),
    "predict": Command(("predict", "run", "table.csv", "-o", "out.csv", "--threads", "1"), TRAIN),
    "data get": Command(("data", "get", "mnist", "--root", "root"), first=lambda: small_mnist(PORT[0])),
}


def write_files(folder: Path) -> None:
    """The files that the commands need: a table and the configuration of a search."""
    draw = random.Random(0)
    rows = [(draw.gauss(0, 1), draw.choice("abc"), draw.gauss(5, 2)) for _ in range(60)]
    lines = [f"{x:.3f},{colour},{y:.2f},{'yes' if x + y > 5 else 'no'}" for x, colour, y in rows]
    (folder / "table.csv").write_text("\n".join(["weight,colour,size,label", *lines]) + "\n")
    (folder / "search.toml").write_text(SEARCH)


def mnist_files() -> dict[str, bytes]:
    draw, files = np.random.default_rng(0), {}
    for part, count in (("train", 12), ("t10k", 6)):
        for kind, array in (
            ("images-idx3", draw.integers(0, 256, (count, 5, 5), np.uint8)),
            ("labels-idx1", np.arange(count, dtype=np.uint8) % 3),
        ):
            header = bytes((0, 0, 8, array.ndim)) + b"".join(n.to_bytes(4, "big") for n in array.shape)
            files[f"{part}-{kind}-ubyte"] = header + array.tobytes()
    return files


def small_mnist(port: int = 1) -> None:
    """Replace MNIST in the catalogue by one of a few bytes, which a server on this machine has."""
    from verydeep.data.known._catalogue import KNOWN_DATASETS, Download, KnownDataset, OfficialFile

    files = mnist_files()
    official = tuple(OfficialFile(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in files.items())
    packed = {f"{name}.gz": gzip.compress(data, mtime=0) for name, data in files.items()}
    downloads = tuple(
        Download(name, len(data), hashlib.sha256(data).hexdigest(), (f"http://127.0.0.1:{port}/{name}",), (name[:-3],))
        for name, data in packed.items()
    )
    KNOWN_DATASETS["mnist"] = KnownDataset(
        "mnist", "MNIST/raw", (1, 5, 5), ("a", "b", "c"), official[:2], official[2:], downloads
    )


def serve_archives() -> None:
    """Offer the archives of the small MNIST, in a process that ends with this one."""
    archives = {f"/{name}.gz": gzip.compress(data, mtime=0) for name, data in mnist_files().items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = archives.get(self.path, b"")
            self.send_response(200 if page else 404)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    PORT[0] = server.server_port
    if os.fork() == 0:
        end_with_parent()
        server.serve_forever()
    server.socket.close()


@dataclass
class Calm:
    """An undisturbed execution: its outcome, what two of them have in common, its time and its file operations."""

    whole: Outcome
    constant: Outcome
    seconds: float
    operations: int
    reads: int


@dataclass
class Disturbed:
    """Commands under faults.

    Args:
        faults: The plan of this process and those it forks.
        scratch: A folder for everything.
    """

    faults: FileFaults
    scratch: Path
    calm: dict[str, Calm] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.scratch / "trial" / "work"

    def prepare(self, names: list[str]) -> None:
        """Import what the commands need, and make what they start from."""
        for name in names:
            base = self._base(name)
            shutil.rmtree(base, ignore_errors=True)
            base.mkdir(parents=True)
            write_files(base)
            command = COMMANDS[name]
            warm = self.scratch / "warm"
            for arguments in filter(None, (command.before, command.arguments)):
                shutil.rmtree(warm, ignore_errors=True)
                shutil.copytree(base, warm)
                if command.first is None:
                    import_as([arguments], warm)
                if arguments == command.before:
                    shutil.rmtree(base)
                    shutil.copytree(warm, base, ignore=shutil.ignore_patterns("imports.log"))

    def _base(self, name: str) -> Path:
        return self.scratch / "bases" / name.replace(" ", "-")

    def fresh(self, name: str) -> None:
        """Make the folder of the next trial, which no fault may meet."""
        self.faults.plan(None)
        shutil.rmtree(self.folder.parent, ignore_errors=True)
        self.folder.parent.mkdir()
        shutil.copytree(self._base(name), self.folder)

    def run(self, name: str, **options: Any) -> Ended:  # noqa: ANN401 - those of run_forked
        command = COMMANDS[name]
        return run_forked(command.arguments, folder=self.folder, seconds=SLOWEST, first=command.first, **options)

    def undisturbed(self, name: str) -> Calm:
        """Run a command twice without faults, and remember."""
        if name not in self.calm:
            counts, found, seconds = [], [], []
            for reads in (False, True):
                self.fresh(name)
                self.faults.plan(self.folder, reads=reads)
                done = self.run(name)
                if done.code or done.left:
                    raise SystemExit(f"{name}: {done}")
                counts.append(self.faults.count)
                found.append(outcome(self.folder))
                seconds.append(done.seconds)
            self.calm[name] = Calm(found[0], constant(*found), min(seconds), *counts)
        return self.calm[name]

    def continued(self, name: str, record: dict[str, Any]) -> dict[str, Any]:
        """Repeat a command without faults unless it has succeeded, and judge."""
        self.faults.plan(None)
        calm = self.calm[name]
        if "success" not in record["ended"]:
            again = self.run(name)
            record["again"] = ending(again)
            if "file" in record and Path(record["file"]).name in again.err:
                record["named"] = True
            if again.code == 0:
                record["ended"] += ", success"
            elif again.code == 2 and not differences(calm.constant, calm.whole, outcome(self.folder)):
                return record | {"verdict": "same"}  # it was complete, and the command says so
        if "success" not in record["ended"]:
            return record | {
                "verdict": ("stuck: " if again.code == 2 else "") + ending(again),
                "err": again.err[-1500:],
            }
        wrong = differences(calm.constant, calm.whole, outcome(self.folder))
        partial = [name for name in wrong if name.endswith(".partial")]
        if wrong == partial != []:
            return record | {"verdict": "left behind", "files": partial[:5]}
        return record | ({"verdict": "wrong", "files": wrong[:20]} if wrong else {"verdict": "same"})

    # Trials

    def kill(self, name: str, number: int, draw: random.Random) -> dict[str, Any]:
        """Kill at a file operation, or send a signal at a random instant."""
        calm = self.undisturbed(name)
        self.fresh(name)
        if number % 2 == 0:
            at = 1 + (number // 2) % calm.operations
            self.faults.plan(self.folder, "kill", at)
            done = self.run(name)
            record = {"at": at, "of": calm.operations, "operation": self._where(), "ended": ending(done)}
        else:
            sent, instant = draw.choice(SIGNALS), draw.uniform(0, calm.seconds)
            self.faults.plan(None)
            done = self.run(name, stop=(instant, sent))
            record = {"signal": sent.name, "seconds": round(instant, 3), "ended": ending(done)}
        return self._after(name, done, record)

    def fail(self, name: str, draw: random.Random) -> dict[str, Any]:
        """Let a file operation fail."""
        calm = self.undisturbed(name)
        self.fresh(name)
        action = draw.choice(["fail", "fail", "fail on", "short", "tear", "power"])
        error = errno.ENOSPC if action == "fail on" else draw.choice([errno.ENOSPC, errno.EIO, errno.EDQUOT])
        reads = action == "fail" and error == errno.EIO and draw.random() < 0.5
        at = draw.randint(1, calm.reads if reads else calm.operations)
        self.faults.plan(self.folder, action, at, error, reads)
        done = self.run(name)
        record = {"fault": action, "error": errno.errorcode[error] if "fail" in action else "", "at": at}
        return self._after(name, done, record | {"operation": self._where(), "ended": ending(done)})

    def tear(self, name: str, draw: random.Random) -> dict[str, Any]:
        """Kill a command at a random file operation, and damage one of the files that are there then."""
        calm = self.undisturbed(name)
        self.fresh(name)
        at = draw.randint(1, calm.operations)
        self.faults.plan(self.folder, "kill", at)
        done = self.run(name)
        self.faults.plan(None)
        before = {path.relative_to(self._base(name)) for path in self._base(name).rglob("*")}
        files = [path for path in sorted(self.folder.rglob("*")) if path.is_file()]
        files = [path for path in files if path.relative_to(self.folder) not in before and path.stat().st_size]
        record: dict[str, Any] = {"at": at, "of": calm.operations, "ended": ending(done)}
        if not files:
            return self.continued(name, record)
        path = draw.choice(files)
        record |= {"file": str(path.relative_to(self.folder)), "damage": damage(path, draw)}
        found = self.continued(name, record)
        if found["verdict"] == "stuck: clear error":  # it may refuse, but not go on with something else
            found["verdict"] = "clear error"
        if found["verdict"] == "wrong":
            stem = str(Path(record["file"]).with_suffix(""))
            others = [each for each in found["files"] if not each.startswith(stem)]
            # in a file that was complete: it is not used again, or what was lost with it is said
            found["verdict"] = "wrong" if others and "named" not in found else "damage stays"
        return found

    def two(self, name: str, draw: random.Random) -> dict[str, Any]:
        """Start a command twice, the second time a little later."""
        calm = self.undisturbed(name)
        self.fresh(name)
        self.faults.plan(None)
        seconds = draw.uniform(0, calm.seconds)
        pid = os.fork()
        if pid == 0:
            try:
                time.sleep(seconds)
                done = self.run(name)
                (self.folder.parent / "second").write_text(f"{ending(done)}\n{done.err[-1500:]}")
            finally:
                os._exit(0)
        first = self.run(name)  # the other one is this process's child already, and no orphan of the command
        os.waitpid(pid, 0)
        second, _, err = (self.folder.parent / "second").read_text().partition("\n")
        record = {"seconds": round(seconds, 3), "ended": f"{ending(first)}, {second}"}
        for ended, printed in ((ending(first), first.err), (second, err)):
            if ended not in ("success", "clear error"):
                return record | {"verdict": ended, "err": printed[-1500:]}
        return self.continued(name, record)

    def _where(self) -> str:
        return self.faults.operation.replace(str(self.folder), "")

    def _after(self, name: str, done: Ended, record: dict[str, Any]) -> dict[str, Any]:
        bad = record["ended"] not in ("success", "clear error", "interrupted") and done.code not in (
            -signal.SIGKILL,
            -signal.SIGHUP,
            -signal.SIGTERM,
        )
        if bad or done.left or done.hung:
            verdict = "processes left" if done.left else record["ended"]
            return record | {"verdict": verdict, "err": done.err[-1500:]}
        return self.continued(name, record)


def damage(path: Path, draw: random.Random) -> str:
    """Truncate, empty, fill the end with zeros, or change a byte of a file."""
    data = path.read_bytes()
    how, at = draw.choice(["cut", "empty", "zeros", "byte"]), draw.randrange(len(data))
    new = {
        "cut": data[:at],
        "empty": b"",
        "zeros": data[:at] + bytes(len(data) - at),
        "byte": data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :],
    }[how]
    path.write_bytes(new)
    return f"{how} at {at} of {len(data)}"
