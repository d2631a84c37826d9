"""The library of file faults does what it says: a small program writes a file, renames it, and appends to another."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from _file_faults import FileFaults, compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler, so no file faults: apt-get install gcc")

# Six operations, or seven with that of the folder: open, write, fsync, rename (, fsync), open, write.
PROGRAM = """
import json, os, sys
os.chdir(sys.argv[1])
try:
    file = os.open("new", os.O_CREAT | os.O_WRONLY)
    done = os.write(file, b"0123456789")
    os.fsync(file)
    os.rename("new", "old")
    if len(sys.argv) > 2:
        os.fsync(os.open(".", os.O_RDONLY))
    log = os.open("log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(log, b"line\\n")
    print(json.dumps(done))
except OSError as error:
    print(json.dumps(error.errno))
"""


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> FileFaults:
    return FileFaults(tmp_path_factory.mktemp("faults"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "watched").mkdir()
    (tmp_path / "watched" / "old").write_text("before")
    (tmp_path / "watched" / "log").write_text("first\n")
    return tmp_path / "watched"


def run(faults: FileFaults, folder: Path, *more: str) -> tuple[int, object]:
    command = [sys.executable, "-c", PROGRAM, str(folder), *more]
    done = subprocess.run(command, capture_output=True, env=os.environ | faults.environment, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else None


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_operations_in_the_folder_are_counted(faults: FileFaults, folder: Path) -> None:
    faults.plan(folder)
    assert run(faults, folder) == (0, 10)
    assert (faults.count, faults.met) == (6, False)
    faults.plan(folder.with_name("watch"))  # the beginning of its name is another folder
    run(faults, folder)
    assert faults.count == 0


@pytest.mark.parametrize(
    ("at", "operation", "expected"),
    [
        (1, "open new", {"old": "before", "log": "first\n"}),
        (2, "write new", {"old": "before", "log": "first\n", "new": ""}),
        (4, "rename old", {"old": "before", "log": "first\n", "new": "0123456789"}),
        (6, "write log", {"old": "0123456789", "log": "first\n"}),
    ],
)
def test_a_process_is_killed_at_an_operation(
    faults: FileFaults, folder: Path, at: int, operation: str, expected: dict[str, str]
) -> None:
    faults.plan(folder, "kill", at)
    assert run(faults, folder) == (-signal.SIGKILL, None)
    assert faults.operation.replace(f"{folder}/", "") == operation
    assert content(folder) == expected


def test_an_operation_fails(faults: FileFaults, folder: Path) -> None:
    faults.plan(folder, "fail", 4, errno.EIO)
    assert run(faults, folder) == (0, errno.EIO)
    assert content(folder)["old"] == "before"
    faults.plan(folder, "fail on", 2, errno.ENOSPC)
    assert run(faults, folder) == (0, errno.ENOSPC)


def test_a_write_is_short_or_torn(faults: FileFaults, folder: Path) -> None:
    faults.plan(folder, "short", 1)  # the first write after it
    assert run(faults, folder) == (0, 5)
    assert content(folder)["old"] == "01234"
    faults.plan(folder, "tear", 6)
    assert run(faults, folder) == (-signal.SIGKILL, None)
    assert content(folder)["log"] == "first\nline\nli"


def test_lost_power_undoes_what_no_fsync_has_kept(faults: FileFaults, folder: Path) -> None:
    faults.plan(folder, "power", 5)
    assert run(faults, folder) == (-signal.SIGKILL, None)
    assert content(folder) == {"old": "before", "log": "first\n", "new": "0123456789"}
    faults.plan(folder, "power", 7)
    assert run(faults, folder, "and the folder") == (-signal.SIGKILL, None)
    assert content(folder) == {"old": "0123456789", "log": "first\n"}
