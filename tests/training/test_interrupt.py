"""Ctrl-C, SIGTERM and SIGHUP, and what is seen in a terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from verydeep.cli import main
from verydeep.training import EpochMetrics, Run, clock, interruptible

OPTIONS = ["--data.source", "digits", "--data.validation", "0.2", "--model.depth", "4", "--model.width", "8"]
OPTIONS += ["--batch-size", "20", "--threads", "1", "--checkpoint-every", "0"]  # so that files follow every epoch


def wait_for_an_epoch(path: Path, process: subprocess.Popen[str]) -> None:
    while not (path / "metrics.jsonl").exists():
        assert process.poll() is None
        time.sleep(0.002)


def outcome(path: Path) -> tuple[list[EpochMetrics], bytes]:
    lines = [replace(line, seconds=0) for line in Run.load(path).metrics]
    return lines, (path / "model.safetensors").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "restartable"), [(signal.SIGINT, False), (signal.SIGTERM, True)])
def test_one_signal_saves_and_says_how_to_continue(number: signal.Signals, restartable: bool, tmp_path: Path) -> None:
    options, path = [*OPTIONS, "--epochs", "60"], tmp_path / "run"
    assert main(["train", *options, "--folder", str(tmp_path / "whole"), "--quiet"]) == 0
    arguments = ["train", *options, "--folder", str(path), *(["--continue"] if restartable else [])]
    command = [sys.executable, "-m", "verydeep", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for_an_epoch(path, process)
    process.send_signal(number)
    _, printed = process.communicate()
    assert process.returncode == 130
    how = "the same command" if restartable else f"verydeep train --resume {path}"
    assert printed == f"verydeep: interrupted and saved; continue with: {how}\n"
    assert (path / "events.log").read_text().splitlines()[-1].endswith(" interrupted")
    assert Run.load(path).summary is None
    assert len(Run.load(path).metrics) < 60
    assert main([*(arguments if restartable else ["train", "--resume", str(path)]), "--quiet"]) == 0
    assert outcome(path) == outcome(tmp_path / "whole")


@pytest.fixture
def listening() -> Iterator[Any]:
    """Python's own handler of SIGINT, which a shell's background jobs would ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_the_first_signal_is_noted_and_the_second_quits_at_once(listening: Any) -> None:
    with interruptible() as interrupt:
        assert not interrupt.requested
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupt.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is listening


def test_signals_are_as_before_when_training_ends() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with interruptible():
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] != before
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.fixture
def hangup() -> Iterator[int]:
    if not hasattr(signal, "SIGHUP"):
        pytest.skip("there is no SIGHUP on this system")
    before = signal.getsignal(signal.SIGHUP)
    yield signal.SIGHUP
    signal.signal(signal.SIGHUP, before)


def test_a_closed_terminal_may_be_announced_twice(hangup: int) -> None:
    signal.signal(hangup, signal.SIG_DFL)
    with interruptible() as interrupt:
        signal.raise_signal(hangup)
        signal.raise_signal(hangup)
        assert interrupt.requested
    assert signal.getsignal(hangup) == signal.SIG_DFL


def test_nohup_is_respected(hangup: int) -> None:
    signal.signal(hangup, signal.SIG_IGN)
    with interruptible() as interrupt:
        signal.raise_signal(hangup)
        assert not interrupt.requested


@pytest.mark.slow
def test_a_run_is_saved_when_its_terminal_is_closed(hangup: int, tmp_path: Path) -> None:
    path = tmp_path / "run"
    command = [sys.executable, "-m", "verydeep", "train", *OPTIONS, "--epochs", "2000", "--folder", str(path)]
    script = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", script, *command], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    while not (path / "metrics.jsonl").exists():
        if select.select([ours], [], [], 0.01)[0]:
            os.read(ours, 10_000)
    os.close(ours)
    assert process.wait() == 130
    assert (path / "events.log").read_text().splitlines()[-1].endswith(" interrupted")


def test_the_second_signal_quits_a_background_job_too_which_ignores_it_at_first() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as shells do for commands that end in &
    try:
        with interruptible() as interrupt:
            signal.raise_signal(signal.SIGINT)
            assert interrupt.requested
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_who_stops_a_part_stops_the_whole(listening: Any) -> None:
    with interruptible() as whole:
        with interruptible() as part:
            signal.raise_signal(signal.SIGINT)
            assert part.requested
        assert whole.requested
        with interruptible() as later:
            assert later.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with interruptible() as another:
        assert not another.requested


def test_a_thread_may_train_although_it_sees_no_signals() -> None:
    seen: list[bool] = []

    def work() -> None:
        with interruptible() as interrupt:
            seen.append(interrupt.requested)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False]


def in_a_terminal(arguments: list[str], columns: int) -> str:
    """What the command writes to a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "verydeep", "train", *arguments],
        stdout=theirs,
        stderr=theirs,
        stdin=theirs,
        env={k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")} | {"TERM": "xterm"},
    )
    os.close(theirs)
    pieces = []
    try:
        while piece := os.read(ours, 65536):
            pieces.append(piece)
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(ours)
    assert process.wait() == 0
    return b"".join(pieces).decode()


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "words"), [(120, ["accuracy ", " samples/s"]), (80, ["acc ", "/s"])])
def test_a_terminal_shows_a_bar_with_all_that_one_wants_to_know(columns: int, words: list[str], tmp_path: Path) -> None:
    shown = in_a_terminal([*OPTIONS, "--epochs", "9", "--folder", str(tmp_path / "run")], columns)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    frames = [frame for frame in re.split(r"[\r\n]+", plain) if re.match(r"epoch \d+/9 .*━", frame)]
    full = [frame for frame in frames if "left" in frame]
    assert full
    expected = (*words, "loss ", "%", "lr 0.0", "━━")
    assert [(word, frame) for frame in full for word in expected if word not in frame] == []
    assert all(len(frame.rstrip()) <= columns for frame in frames)
    lines = [line for line in plain.splitlines() if re.match(r"epoch +\d+/9  loss", line.strip("\r"))]
    assert len(lines) == 9
    assert f"everything is in {tmp_path / 'run'}" in plain.replace("\r\n", "")


@pytest.mark.slow
def test_a_terminal_stays_empty_when_quiet(tmp_path: Path) -> None:
    assert in_a_terminal([*OPTIONS, "--epochs", "1", "--quiet", "--folder", str(tmp_path / "run")], 100) == ""


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (61, "1:01"), (3661, "1:01:01")])
def test_time_is_written_as_people_read_it(seconds: float, text: str) -> None:
    assert clock(seconds) == text
