"""Mutated inputs and absurd options: every command must succeed or say in a line or two what is wrong.

A home has runs, a search, an unfinished run, tables, images, arrays, archives and configurations. A case copies what a
command needs, changes one file (`_fault_mutators.py`), and runs the command, with limits on memory and time. A changed
file that carries a digest must be noticed: if the command succeeds nevertheless, and says nothing, it must print the
same as with the file unchanged.
"""

import gzip
import os
import random
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from _fault_commands import NETWORK, TRAIN, mnist_files, small_mnist, write_files
from _fault_mutators import mutate
from _fault_outcomes import ending
from _file_faults import FileFaults
from _warm import Ended, WarmWorker, import_as, run_forked, run_started
from PIL import Image

import verydeep
from verydeep.processes import python_command

GIGABYTES = 3.0  # that a command may take for a file of some kilobytes
SECONDS = 20.0
CONFIG = 'epochs = 1\nbatch_size = 10\n[data]\nsource = "table.csv"\n[model]\nwidth = 4\ndepth = 3\n[optim]\nlr = 0.1\n'
ONE = ("--threads", "1")
FAST = ("--depth", "2", "--width", "4", "--epochs", "1", *ONE, "--quiet")


@dataclass(frozen=True)
class Kind:
    """A kind of input.

    Attributes:
        files: Patterns of the files that are changed.
        needs: The folders and files of the home that the commands read.
        commands: The commands, the frequent ones several times.
        has_digest: Whether any change of a file must be noticed.
    """

    files: tuple[str, ...]
    needs: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    has_digest: bool = False


EVAL = ("eval", "run", *ONE)
PREDICT = ("predict", "run", "table.csv", *ONE)
KINDS = {
    "images": Kind(
        ("images/*/*.png",),
        ("images", "run-images"),
        (("train", "images", "--folder", "new", *FAST), ("predict", "run-images", "images", *ONE)),
    ),
    "arrays": Kind(
        ("arrays.npz",),
        ("arrays.npz", "run-arrays"),
        (("train", "arrays.npz", "--folder", "new", *FAST), ("predict", "run-arrays", "arrays.npz", *ONE)),
    ),
    "archives": Kind(("root/*.gz",), ("root",), (("data", "get", "mnist", "--root", "root"),), has_digest=True),
    "configurations": Kind(
        ("config.toml", "search.toml"),
        ("config.toml", "search.toml", "table.csv"),
        (
            ("train", "config.toml", "--folder", "new", "--quiet", *ONE),
            ("search", "search.toml", "--trials", "1", "--jobs", "1", "--study", "new", "--quiet"),
        ),
    ),
    "checkpoints": Kind(
        ("unfinished/checkpoint/*.safetensors",),
        ("unfinished", "table.csv"),
        (("train", "--resume", "unfinished"),),
        has_digest=True,
    ),
    "weights": Kind(("run/model.safetensors",), ("run", "table.csv"), (EVAL, PREDICT), has_digest=True),
    "journals": Kind(
        ("search/journal.log", "search/*.json"),
        ("search", "search.toml", "table.csv"),
        (
            ("search", "show", "search"),
            ("search", "best", "search"),
            ("search", "search.toml", "--study", "search", "--jobs", "1", "--quiet"),
        ),
    ),
    "results": Kind(
        ("run/*.json", "run/*.json", "run/*.jsonl", "run/analysis/*.npz", "run/analysis/*.json", "run/checkpoint/*"),
        ("run", "table.csv"),
        (
            *(("runs", "."), ("runs", "."), ("compare", "run", "run"), EVAL, PREDICT),
            *(("prune", "run", *ONE), ("explore", "run", "--no-open", *ONE), TRAIN, ("train", "--resume", "run")),
            *(("compare", "run", "run"), ("runs", "."), EVAL, ("report", "run", *ONE)),
        ),
    ),
}
ABSURD = [
    *(
        "",
        " ",
        "-1",
        "0",
        "-0",
        "nan",
        "inf",
        "-inf",
        "1e308",
        "1e-320",
        "1000000000000",
        "9" * 400,
        "0.5",
        "x",
        "é\u202e",
    ),
    *(
        "true",
        ",",
        "=",
        "a=b",
        "a,b,,c",
        "[]",
        "{}",
        "None",
        "../../x",
        "/dev/full",
        "/dev/null/x",
        "a" * 5000,
        "\ud800",
    ),
    *(
        "--",
        "-",
        "~",
        "postgresql://u:p@127.0.0.1:1/x",
        "http://127.0.0.1:1",
        "file:///etc/passwd",
        "%s",
        "$HOME",
        "\x1b[",
    ),
]
# --jobs starts as many processes as asked for, and --remove removes runs.
LEFT_OUT = {"--jobs", "--help", "--heartbeat", "--remove", "--yes"}


@dataclass
class Inputs:
    """The home and its cases.

    Args:
        faults: The plan of this process, needed for the unfinished run.
        scratch: A folder for everything.
    """

    faults: FileFaults
    scratch: Path
    calm: dict[tuple[str, ...], str] = field(default_factory=dict)
    options: dict[tuple[str, ...], list[str]] = field(default_factory=dict)
    worker: WarmWorker = field(default_factory=lambda: WarmWorker(SECONDS, GIGABYTES, small_mnist))

    @property
    def home(self) -> Path:
        return self.scratch / "home"

    @property
    def folder(self) -> Path:
        return self.scratch / "case"

    def prepare(self) -> None:
        """Make the home, and import what its commands need."""
        self.faults.plan(None)
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        write_files(self.home)
        (self.home / "config.toml").write_text(CONFIG)
        draw = np.random.default_rng(0)
        for number in range(12):
            path = self.home / "images" / "ab"[number % 2] / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(draw.integers(0, 256, (8, 8), np.uint8)).save(path)
        np.savez_compressed(self.home / "arrays.npz", x=draw.normal(size=(24, 5)).astype("f4"), y=np.arange(24) % 3)
        import_as(
            [
                TRAIN,
                ("train", "images", "--folder", "run-images", *FAST),
                ("train", "arrays.npz", "--folder", "run-arrays", *FAST),
                ("search", "search.toml", "--study", "search", "--jobs", "1", "--quiet"),
                ("analyze", "run", "--only", "gates,lesions,usage", *ONE),
                *(EVAL, PREDICT, ("compare", "run", "run"), ("runs", "."), ("search", "show", "search")),
                ("predict", "run-images", "images", *ONE),
                ("report", "run", "-o", "report.html", *ONE),
                ("train", "config.toml", "--folder", "from-config", "--quiet", *ONE),
            ],
            self.home,
        )
        self._unfinished()
        (self.home / "root").mkdir()
        for name, data in mnist_files().items():
            (self.home / "root" / f"{name}.gz").write_bytes(gzip.compress(data, mtime=0))

    def _unfinished(self) -> None:
        """A run that was killed between its two epochs."""
        arguments = tuple("unfinished" if each == "run" else each for each in TRAIN)
        work = self.scratch / "unfinished"
        for at in range(40, 80, 2):
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            shutil.copy(self.home / "table.csv", work)
            self.faults.plan(work, "kill", at)
            run_forked(arguments, folder=work)
            self.faults.plan(None)
            if len(list(work.glob("unfinished/checkpoint/*.safetensors"))) == 2:
                break
        shutil.copytree(work / "unfinished", self.home / "unfinished")

    def _fresh(self, needs: Sequence[str]) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        for name in needs:
            source = self.home / name
            if source.is_dir():
                shutil.copytree(source, self.folder / name)
            else:
                shutil.copy(source, self.folder / name)

    def _run(self, arguments: Sequence[str], real: bool) -> Ended:
        if real and arguments[0] != "data":
            environment = os.environ | {"PYTHONPATH": str(Path(verydeep.__file__).parents[1])}
            environment.pop("LD_PRELOAD", None)
            return run_started(
                python_command("-m", "verydeep", *arguments), folder=self.folder, environment=environment
            )
        first = small_mnist if arguments[0] == "data" else None
        return run_forked(arguments, folder=self.folder, seconds=SECONDS, gigabytes=GIGABYTES, first=first)

    def _expected(self, kind: Kind, command: tuple[str, ...]) -> str:
        """What the command prints for unchanged files."""
        if command not in self.calm:
            self._fresh(kind.needs)
            done = self._run(command, False)
            if done.code:
                raise SystemExit(f"{' '.join(command)}: {done}")
            self.calm[command] = self._result(command, done)
        return self.calm[command]

    def _result(self, command: tuple[str, ...], done: Ended) -> str:
        """What must not change without a word: the numbers printed, or those of the trained network."""
        if "--resume" in command:
            weights = self.folder / "unfinished" / "model.safetensors"
            return weights.read_bytes()[-1000:].hex() if weights.exists() else ""
        return done.out if command[0] in ("eval", "predict") else ""

    def case(self, draw: random.Random, real: bool = False) -> dict[str, Any]:
        """Change a file and run a command."""
        if real:
            return self._case(draw, lambda command: self._run(command, real))
        state = draw.getstate()
        record = self._case(draw, lambda command: self.worker.run(command, folder=self.folder))
        if record["verdict"] in ("success", "clear error"):
            return record
        draw.setstate(state)  # in a process of its own, which nothing that ran before can have disturbed
        return self._case(draw, lambda command: self._run(command, real))

    def _case(self, draw: random.Random, run: Callable[[tuple[str, ...]], Ended]) -> dict[str, Any]:
        name = draw.choice(sorted(KINDS))
        kind = KINDS[name]
        command = draw.choice(kind.commands)
        expected = self._expected(kind, command) if kind.has_digest else ""
        self._fresh(kind.needs)
        pattern = draw.choice(kind.files)
        path = draw.choice(sorted(self.folder.glob(pattern)))
        how = mutate(path, draw)
        done = run(command)
        record = {
            "kind": name,
            "file": str(path.relative_to(self.folder)),
            "change": how,
            "command": " ".join(command),
            "verdict": ending(done),
            "megabytes": done.megabytes,
        }
        is_silent = done.code == 0 and kind.has_digest and "verydeep:" not in done.err
        if is_silent and self._result(command, done) != expected:
            record["verdict"] = "wrong"
        if record["verdict"] not in ("success", "clear error"):
            record["err"] = done.err[-1500:]
        return record

    # Absurd options

    def absurd(self, draw: random.Random, real: bool = False) -> dict[str, Any]:
        """Run a command with one or two options that nobody can mean."""
        command = draw.choice(OPTION_COMMANDS)
        if command not in self.options:
            help_ = run_forked((command[0], "--help"), folder=self.home).out
            found = set(re.findall(r"^  (--[a-z][\w.-]*|--\[no-\][\w.-]+)", help_, re.MULTILINE))
            self.options[command] = sorted(each for each in found if each not in LEFT_OUT and "[no-]" not in each)
        extra = [f"{draw.choice(self.options[command])}={draw.choice(ABSURD)}" for _ in range(draw.choice([1, 1, 2]))]
        self._fresh(("run", "table.csv", "config.toml", "search.toml"))
        arguments = (*command, *(each.replace("\ud800", "\udcff") for each in extra))
        done = self._run(arguments, real)
        verdict = ending(done)
        record = {
            "kind": "options",
            "command": " ".join(command),
            "change": " ".join(each[:80] for each in extra),
            "verdict": "ran until the limit" if verdict == "hang" else verdict,  # 10**12 epochs are what was asked for
            "megabytes": done.megabytes,
        }
        if record["verdict"] not in ("success", "clear error"):
            record["err"] = done.err[-1500:]
        return record


OPTION_COMMANDS = (
    ("train", "table.csv", "--folder", "new", *NETWORK, "--quiet"),
    ("train", "config.toml", "--folder", "new", "--quiet"),
    ("train", "table.csv", "--folder", "new", *NETWORK, "--quiet"),
    ("predict", "run", "table.csv"),
    ("eval", "run"),
    ("prune", "run"),
    ("explore", "run", "--no-open"),
    ("runs",),
    ("compare", "run", "run"),
    ("analyze", "run", "--only", "gates"),
)
