"""The commit beside a result is what git says, and finding it runs no program."""

import shutil
import subprocess
from pathlib import Path

import pytest

from verydeep.training import environment
from verydeep.training.run._git import checked_out_commit

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    command = ["git", *who, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "file").write_text("1")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def test_the_commit_is_that_of_the_working_directory(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / "deep" / "inside").mkdir(parents=True)
    monkeypatch.chdir(checkout / "deep" / "inside")
    assert environment()["git"] == git(checkout, "rev-parse", "HEAD")


def test_no_program_of_the_checkout_is_run(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, marker, program = git(checkout, "rev-parse", "HEAD"), tmp_path / "marker", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {marker}\n")
    program.chmod(0o755)
    git(checkout, "config", "core.fsmonitor", str(program))
    git(checkout, "config", "filter.evil.clean", str(program))
    (checkout / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    (checkout / "file").write_text("2")
    monkeypatch.chdir(checkout)
    assert environment()["git"] == commit
    assert not marker.exists()


def test_a_detached_head_packed_branches_and_branches_with_slashes_are_read(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    git(checkout, "checkout", "-q", "-b", "a/b")
    assert checked_out_commit(checkout) == commit
    git(checkout, "pack-refs", "--all")
    assert not (checkout / ".git" / "refs" / "heads" / "a").exists()
    assert checked_out_commit(checkout) == commit
    git(checkout, "commit", "-q", "--allow-empty", "-m", "second")  # beside the packed one, which is older now
    assert checked_out_commit(checkout) == git(checkout, "rev-parse", "HEAD") != commit
    git(checkout, "checkout", "-q", "--detach", "main")
    assert checked_out_commit(checkout) == commit


@pytest.mark.parametrize("packed", [False, True])
def test_a_worktree_has_its_own_commit(checkout: Path, tmp_path: Path, packed: bool) -> None:
    other = tmp_path / "other"
    git(checkout, "worktree", "add", "-q", "-b", "other", str(other))
    git(other, "commit", "-q", "--allow-empty", "-m", "second")
    if packed:
        git(checkout, "pack-refs", "--all")
    assert checked_out_commit(other) == git(other, "rev-parse", "HEAD")
    assert checked_out_commit(checkout) == git(checkout, "rev-parse", "HEAD") != checked_out_commit(other)


def test_without_a_checkout_or_a_commit_there_is_none(tmp_path: Path) -> None:
    assert checked_out_commit(tmp_path / "nowhere") is None
    git(tmp_path, "init", "-q")
    assert checked_out_commit(tmp_path) is None


@pytest.mark.parametrize("head", ["", "ref: HEAD", "ref: ../../secret", "ref: /etc/passwd", "ref: \0", "x" * 9999])
def test_a_damaged_checkout_has_no_commit_and_tells_nothing_else(checkout: Path, tmp_path: Path, head: str) -> None:
    (tmp_path / "secret").write_text("secret")
    (checkout / ".git" / "HEAD").write_text(head)
    assert checked_out_commit(checkout) is None
