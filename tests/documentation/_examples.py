"""Sybil's parsers and evaluators for the blocks of a page: Python, TOML and shell.

A block that cannot be run here begins with a comment that readers see, too: one of `MARKERS`, a colon and the reason.
Commands of ours run inside this process. Those that take long run in a quick form: fewer epochs, and scikit-learn's
digits in place of MNIST and of the network that comes with verydeep.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

from sybil import Document, Example, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser
from sybil.region import Lexeme

from verydeep.cli import main
from verydeep.config import find_config, from_dict
from verydeep.processes import python_command
from verydeep.search import read_search
from verydeep.training import TrainConfig, read_config

from ._pages import ROOT

MARKERS = ("long", "cluster", "network", "gpu")
_MARKED = re.compile(rf"# ({'|'.join(MARKERS)}): \S")
_QUICK: dict[str, dict[str, str | None]] = {  # options that replace what a command says, by its first words
    "depth": {"--minutes": None, "--most": "2", "--total-epochs": "760", "--jobs": "1"},
    "reproduce": {"--quick": "", "--jobs": "1"},
    "explore": {"--no-open": ""},
}
_QUICK_NETWORK = {"--data": "digits", "--depth": "4", "--epochs": "1", "--batch-size": "200"}


def marker(text: str) -> str | None:
    """The marker of a block that is not run here."""
    match = _MARKED.match(text)
    return match[1] if match else None


def run_python(example: Example) -> None:
    """Run a block in the names of its page, or save it as the file that a first line such as `# model.py` names."""
    if marker(example.parsed):
        return
    named = re.match(r"# (\w+\.py)$", example.parsed, flags=re.M)
    if named:
        Path(named[1]).write_text(example.parsed)
        return
    quick = re.sub(r"^(epochs|steps) = \d+$", r"\1 = 2", example.parsed, flags=re.M)
    example.parsed = Lexeme(quick, example.parsed.offset, example.parsed.line_offset)
    _PYTHON(example)


def check_toml(example: Example) -> None:
    """Read a block as a configuration; a first line such as `# flowers.toml` names the file that it becomes."""
    text = example.parsed
    if marker(text):
        return
    named = re.match(r"# (\w[\w-]*\.toml)\b", text)
    file = Path(named[1] if named else "example.toml")
    file.write_text(text)
    settings = tomllib.loads(text)
    if "search" in settings:
        assert read_search(file).space
    elif "extends" in settings:
        read_config(file)
    else:
        from_dict(TrainConfig, settings)


def run_shell(example: Example) -> None:
    """Run the commands of a block, one after the other."""
    if marker(example.parsed):
        return
    for line in example.parsed.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words[0] == "make":  # these install and take minutes; make knows what they would do
            subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, check=True, capture_output=True)
        elif words[0] == "verydeep" and "|" not in words:
            code = _run_once(quick_form(words[1:]))
            assert code == 0, f"exit code {code}: {line}"
        else:
            programs = Path("bin")
            programs.mkdir(exist_ok=True)
            (programs / "verydeep").write_text(f'#!/bin/sh\nexec {shlex.join(python_command("-m", "verydeep"))} "$@"\n')
            (programs / "verydeep").chmod(0o755)
            path = f"{programs.resolve()}{os.pathsep}{os.environ['PATH']}"
            subprocess.run(["bash", "-euo", "pipefail", "-c", line], check=True, env=os.environ | {"PATH": path})


def quick_form(words: list[str]) -> list[str]:
    """The same command in a form that takes seconds."""
    words = [os.environ["QUICK_RUN"] if word.startswith("pretrained:") else word for word in words]
    command, *rest = words
    changes: dict[str, str | None] = dict(_QUICK.get(command, {}))
    if command == "report" and "-o" not in rest:  # the page about reports shows all of one
        changes["--no-analysis"] = ""
    if command == "train":
        known = bool(rest) and not rest[0].startswith("-") and _is_known(rest[0])
        if rest[:1] == ["digits"]:
            changes |= {name: value for name, value in _QUICK_NETWORK.items() if name != "--data"}
        if "--seeds" in rest:
            changes |= {"--seeds": "2", "--jobs": "1", "--epochs": "1"} | (
                {"--folds": "2"} if "--folds" in rest else {}
            )
        if known:
            changes |= _QUICK_NETWORK
            if "--folder" not in rest:  # named as by the data that a reader trains on
                changes["--folder"] = (
                    f"runs/highway-mlp-mnist-{len(list(Path('runs').glob('highway-mlp-mnist-*'))) + 1}"
                )
        elif "--resume" in rest and "--epochs" in rest:
            changes["--epochs"] = "2"
    for option, value in changes.items():
        while option in rest:
            place = rest.index(option)
            del rest[place : place + 1 + (value != "")]
        if value is not None:
            rest += [option, value] if value else [option]
    return [command, *rest]


def _is_known(name: str) -> bool:
    """Whether this is the name of a configuration that comes with verydeep, or of MNIST."""
    if name == "mnist":
        return True
    return (
        not name.endswith((".toml", ".csv"))
        and not Path(name).exists()
        and name != "digits"
        and find_config(name).exists()
    )


def _run_once(words: list[str]) -> int:
    """Run a command; the answer to a question about depth that an earlier page asked of the same table is copied."""
    if words[0] != "depth" or not Path(words[1]).is_file():
        return _run(words)
    digest = hashlib.sha256(repr(sorted(words)).encode() + Path(words[1]).read_bytes()).hexdigest()
    saved, folder = Path(os.environ["QUICK_RUN"]).parent / digest, Path("runs", f"depth-{Path(words[1]).stem}")
    if saved.exists():
        shutil.copytree(saved, folder)
        return 0
    code = _run(words)
    if code == 0:
        shutil.copytree(folder, saved)
    return code


def _run(words: list[str]) -> int:
    try:
        return main(words)
    except SystemExit as end:
        return int(end.code or 0)


_PYTHON = PythonEvaluator()
SYBIL = Sybil(
    [
        CodeBlockParser("python", run_python),
        CodeBlockParser("toml", check_toml),
        CodeBlockParser("bash", run_shell),
    ]
)


def examples(page: Path) -> Iterator[Example]:
    """The examples of a page, in order."""
    document: Document = SYBIL.parse(page)
    yield from document.examples()


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of every block of a page."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), flags=re.S | re.M)
