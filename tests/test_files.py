import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from verydeep.errors import UserError
from verydeep.files import append, make_folder, read_json, read_toml, write_atomic
from verydeep.processes import python_command


def test_a_file_is_replaced_atomically(tmp_path: Path) -> None:
    write_atomic(tmp_path / "new" / "file", "first")
    write_atomic(tmp_path / "new" / "file", b"second")
    assert (tmp_path / "new" / "file").read_text() == "second"
    assert len(list((tmp_path / "new").iterdir())) == 1


def test_a_failed_write_leaves_only_the_old_file(tmp_path: Path) -> None:
    write_atomic(tmp_path / "file", "old")

    def full(partial: Path) -> None:
        partial.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(UserError, match="the disk is full"):
        write_atomic(tmp_path / "file", full)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_device_or_a_folder_is_never_replaced(tmp_path: Path) -> None:
    for path in (Path("/dev/null"), tmp_path):
        with pytest.raises(UserError, match="not a regular file"):
            write_atomic(path, "data")
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "is not JSON"), ("[1]", "got list"), ("\udcff", "is not JSON"), ("[" * 100_000, "is not JSON")],
)
def test_a_file_that_is_not_a_json_object_is_reported(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(UserError, match=words):
        read_json(tmp_path / "file")


def test_a_missing_file_is_reported_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file or directory; expected a run"):
        read_json(tmp_path / "file", "expected a run")
    with pytest.raises(UserError, match="cannot read"):
        read_toml(tmp_path)


def test_what_a_killed_writer_leaves_is_removed_by_the_next_one_and_what_a_living_one_writes_is_not(
    tmp_path: Path,
) -> None:
    program = """
import sys
from pathlib import Path
from verydeep.files import write_atomic

def wait(partial):
    partial.write_text("half")
    print("ready", flush=True)
    sys.stdin.read()

write_atomic(Path(sys.argv[1]), wait)
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = python_command("-c", program, str(tmp_path / "file"))
    with subprocess.Popen(command, **pipes) as writer:  # type: ignore[call-overload]
        assert writer.stdout.read(6) == b"ready\n"
        write_atomic(tmp_path / "other", "")
        assert len(list(tmp_path.iterdir())) == 2
        writer.send_signal(signal.SIGKILL)
    write_atomic(tmp_path / "other", "")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


@pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be opened there")
def test_a_rename_and_a_new_file_are_on_the_disk_before_the_program_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    write_atomic(tmp_path / "file", "text")
    assert synced[0].endswith(".partial")
    assert synced[1:] == [tmp_path.name]
    append(tmp_path / "log", "line\n")
    append(tmp_path / "log", "line\n")
    assert synced[2:] == ["log", tmp_path.name, "log"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ('{"name": 3}', "expected text as 'name', got '3'"),
        ('{"size": {"depth": true}}', "expected a whole number as 'size.depth', got 'True'"),
        ('{"seconds": "3"}', "expected a number as 'seconds', got '3'"),
    ],
)
def test_an_entry_of_another_type_is_reported(values: str, message: str, tmp_path: Path) -> None:
    types = {"name": str, "size.depth": int, "seconds": float}
    (tmp_path / "file").write_text('{"name": null, "size": {"depth": 3}, "seconds": 1, "other": []}')
    assert read_json(tmp_path / "file", types=types)["seconds"] == 1
    (tmp_path / "file").write_text(values)
    with pytest.raises(UserError, match=message):
        read_json(tmp_path / "file", types=types)


def test_devices_and_pipes_without_a_writer_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="a pipe that nothing writes to"):
        read_toml(tmp_path / "pipe")
    with pytest.raises(UserError, match="not a regular file"):
        read_json(Path("/dev/zero"))


def test_a_configuration_may_come_through_a_pipe(tmp_path: Path) -> None:
    read, write = os.pipe()
    with os.fdopen(write, "w") as stream:

        def send() -> None:
            stream.write("depth = 3")
            stream.close()

        timer = threading.Timer(0.1, send)
        timer.start()
        assert read_toml(Path(f"/dev/fd/{read}")) == {"depth": 3}
        timer.join()
    os.close(read)


def test_a_folder_of_thousands_of_levels_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a relative path may be longer than an absolute one
    with pytest.raises(UserError, match="levels"):
        make_folder(Path(*["d"] * 1900))
