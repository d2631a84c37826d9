"""Python processes that this one starts, and how the two talk.

Every process is a fresh interpreter, because a fork of a process that runs threads may hang. It never imports from the
directory it is started in: without `-P`, a file called `random.py` there would be run. `tests/test_layout.py` enforces
that no other module starts Python.

Parent and child exchange lines of JSON through the child's standard input and output. Options go there and not to the
command line, which everyone on the machine can read: a storage's address may contain a password. A child saves its work
and ends when its standard input is closed, which also happens when its parent has died.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MOST_READ = 1 << 20  # bytes


def python_command(*arguments: str) -> list[str]:
    """Return the command that runs this Python with the arguments, such as `-m` and the name of a module."""
    return [sys.executable, "-P", *arguments]


class ChildProcess:
    """A Python process in a session of its own, so that Ctrl-C reaches only the parent, which passes it on once.

    Args:
        arguments: The arguments of Python, such as `-m` and the name of a module.
        environment: Its environment variables.
        errors: The file that receives what it prints to standard error.
    """

    def __init__(self, *arguments: str, environment: Mapping[str, str], errors: IO[Any]) -> None:
        self._process = subprocess.Popen(
            python_command(*arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=dict(environment),
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output, self._partial = self._process.stdin, self._process.stdout, b""

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code, negative if it was killed by a signal; None while it runs."""
        return self._process.poll()

    def send(self, message: Mapping[str, object]) -> None:
        """Send a message; nothing happens if the process has ended."""
        with suppress(BrokenPipeError):
            self._input.write(json.dumps(message).encode() + b"\n")
            self._input.flush()

    def receive(self) -> dict[str, Any] | None:
        """Wait for the next message; None if the process has ended."""
        line = self._output.readline()
        return dict(json.loads(line)) if line.endswith(b"\n") else None

    def received(self) -> list[dict[str, Any]]:
        """The messages that have arrived, without waiting; not to be mixed with `receive`.

        Other lines are ignored: a library may print to standard output past Python.
        """
        os.set_blocking(self._output.fileno(), False)
        with suppress(BlockingIOError):
            self._partial += os.read(self._output.fileno(), _MOST_READ)
        *lines, self._partial = self._partial.split(b"\n")
        messages = []
        for line in lines:
            with suppress(ValueError):
                messages.append(json.loads(line))
        return [message for message in messages if isinstance(message, dict)]

    def stop(self) -> None:
        """Close its standard input, which asks it to save and end."""
        with suppress(BrokenPipeError):
            self._input.close()

    def kill(self) -> None:
        """End it now."""
        self._process.kill()
        self.wait()

    def wait(self) -> None:
        """Wait until it has ended, and close the pipes."""
        self.stop()
        self._process.wait()
        self._output.close()


def first_message() -> dict[str, Any]:
    """In a child: read the first message, and not a byte more, because `stop_when_input_closes` waits for the rest."""
    line = _read_line()
    if not line:  # the parent has gone before it said anything
        sys.exit(0)
    return dict(json.loads(line))


def messages() -> Iterator[dict[str, Any]]:
    """In a child that has nothing to save: read all messages; the process ends at once when the parent has gone."""
    lines = SimpleQueue[bytes]()

    def read() -> None:
        while line := _read_line():
            lines.put(line)
        os._exit(0)  # even in the middle of its work

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield dict(json.loads(lines.get()))


def _read_line() -> bytes:
    """The next line of standard input, unbuffered, because a lock on sys.stdin would block the interpreter's exit.

    It is empty when the parent has closed it.
    """
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(sys.stdin.fileno(), 1)
        if not byte:
            return b""
        line += byte
    return line


def stop_when_input_closes() -> None:
    """In a child: press Ctrl-C, as it were, when the parent closes this process's standard input or dies."""

    def wait() -> None:
        _read_line()
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()


def send_if_possible(message: Mapping[str, object]) -> None:
    """In a child: send a message of a few hundred bytes, or drop it if the parent does not read or has gone."""
    output = sys.__stdout__
    if output is None:
        return
    os.set_blocking(output.fileno(), False)
    with suppress(BlockingIOError, BrokenPipeError):
        os.write(output.fileno(), json.dumps(message).encode() + b"\n")
