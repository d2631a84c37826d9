"""Commands in processes forked from one that has already imported everything, so that a command takes milliseconds.

A process that forks must not have run anything with several threads. What a command needs is found by running it once
in a forked process, which tells the names of the modules it has imported.
"""

import contextlib
import ctypes
import importlib
import json
import os
import resource
import runpy
import select
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from verydeep import processes
from verydeep.cli import main as verydeep_main

GIGABYTE = 1 << 30
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_MOST_COMMANDS = 500  # in one process
_GRACE = 10.0  # seconds that processes have to end after the command that started them


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        code: Its exit code, or the negative number of the signal that ended it.
        out: Its standard output.
        err: Its standard error.
        seconds: How long it took.
        megabytes: The peak of its memory.
        hung: Whether it was killed because it took too long.
        left: How many processes it has left behind that did not end by themselves.
    """

    code: int
    out: str = ""
    err: str = ""
    seconds: float = 0.0
    megabytes: int = 0
    hung: bool = False
    left: int = 0


def run_here(arguments: Sequence[str]) -> int:
    """Run a command in this process, as the program would; what it raises becomes a traceback and exit code 1."""
    try:
        with warnings.catch_warnings():  # forgets which warnings were shown before
            code = verydeep_main(list(arguments))
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:  # it is recorded
        code = 1
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, UnicodeError):
            stream.flush()
    return code


def take_streams(out: int, err: int, stdin: Path | None = None) -> None:
    """Replace the standard streams of this process, as if it had been started with these files."""
    source = os.open(stdin or os.devnull, os.O_RDONLY)
    for old, new in ((source, 0), (out, 1), (err, 2)):
        os.dup2(old, new)
    os.close(source)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = (open(n, "w", encoding="utf-8", closefd=False) for n in (1, 2))  # noqa: SIM115
    sys.stderr.reconfigure(errors="backslashreplace", line_buffering=True)


def run_forked(
    arguments: Sequence[str],
    *,
    folder: Path,
    seconds: float = 60.0,
    gigabytes: float = 0.0,
    stop: tuple[float, int] | None = None,
    first: Callable[[], None] | None = None,
    stdin: Path | None = None,
) -> Ended:
    """Run a command in a forked process with a session of its own.

    Args:
        arguments: The command's arguments.
        folder: The working directory.
        seconds: When it is killed, with everything it has started.
        gigabytes: The address space that it may take in addition to what it has when it is forked; 0 for any.
        stop: After how many seconds to send which signal.
        first: What to do in the forked process before the command.
        stdin: The file at its standard input.
    """
    with _streams() as (out, err):
        began, before = time.monotonic(), _children()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.setsid()
                take_streams(out.fileno(), err.fileno(), stdin)
                os.chdir(folder)
                if gigabytes:
                    limit_memory(gigabytes)
                if first:
                    first()
                code = run_here(arguments)
            except KeyboardInterrupt:  # before the command has begun
                code = 130
            finally:
                os._exit(code)
        status, peak, hung = _wait(pid, began, seconds, stop)
        seconds = time.monotonic() - began
        left = _end_orphans(before)
        return Ended(os.waitstatus_to_exitcode(status), _text(out), _text(err), seconds, peak >> 10, hung, left)


def run_started(
    command: Sequence[str], *, folder: Path, seconds: float = 120.0, environment: Mapping[str, str] | None = None
) -> Ended:
    """Run a real command, with everything it starts ended after some seconds."""
    with _streams() as (out, err):
        began, before = time.monotonic(), _children()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        status, peak, hung = _wait(process.pid, began, seconds, None)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began
        left = _end_orphans(before)
        return Ended(process.returncode, _text(out), _text(err), seconds, peak >> 10, hung, left)


class WarmWorker:
    """A forked process that runs one command after another; it is replaced when one of them hangs or ends it.

    Args:
        seconds: The time of a command.
        gigabytes: The address space that the process may take in addition to what it has when it is forked.
        first: What to do in the process before the first command.
    """

    def __init__(self, seconds: float, gigabytes: float, first: Callable[[], None] | None = None) -> None:
        self.seconds, self.gigabytes, self.first = seconds, gigabytes, first
        self._pid, self._commands = 0, 0

    def run(self, arguments: Sequence[str], *, folder: Path, stdin: Path | None = None) -> Ended:
        """Run a command."""
        if self._commands == _MOST_COMMANDS:
            self.end()
        if self._pid == 0:
            self._start()
        self._commands += 1
        began, before = time.monotonic(), _children()
        for stream in (self._out, self._err):
            stream.seek(0)
            stream.truncate()
        request = {"arguments": list(arguments), "folder": str(folder), "stdin": str(stdin) if stdin else None}
        os.write(self._ask, json.dumps(request).encode() + b"\n")
        ready = select.select([self._answer], [], [], self.seconds)[0]
        told = self._answer.readline() if ready else b""
        if told:
            code, megabytes = json.loads(told)
        else:
            before.discard(self._pid)
            code, megabytes = self._kill(), 0
        left = _end_orphans(before)
        seconds = time.monotonic() - began
        return Ended(code, _text(self._out), _text(self._err), seconds, megabytes, hung=not ready, left=left)

    def end(self) -> None:
        """End the process; the next command gets a new one."""
        if self._pid:
            self._kill()

    def _kill(self) -> int:
        """Kill the process, which would not see its pipe closed: workers forked after it have a copy of the other end.

        Returns:
            Its exit code, or minus the signal that had ended it before.
        """
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        os.close(self._ask)
        self._answer.close()
        self._pid, self._commands = 0, 0
        return code

    def _start(self) -> None:
        self._out, self._err = (open(os.memfd_create(name), "w+b", buffering=0) for name in ("out", "err"))  # noqa: SIM115
        (asked, self._ask), (answer, told) = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                end_with_parent()
                os.setsid()
                os.close(self._ask)
                os.close(answer)
                limit_memory(self.gigabytes)
                if self.first:
                    self.first()
                for line in open(asked, "rb"):  # noqa: SIM115 - until the end of the process
                    os.write(told, json.dumps(self._command(json.loads(line))).encode() + b"\n")
            finally:
                os._exit(1)
        os.close(asked)
        os.close(told)
        self._pid, self._answer = pid, open(answer, "rb", buffering=0)  # noqa: SIM115

    def _command(self, request: dict[str, Any]) -> tuple[int, int]:
        """Run a command in the process; returns its exit code and the peak of its memory in megabytes."""
        Path("/proc/self/clear_refs").write_text("5")  # the peak is what it has now
        take_streams(self._out.fileno(), self._err.fileno(), Path(request["stdin"]) if request["stdin"] else None)
        os.chdir(request["folder"])
        code = run_here(request["arguments"])
        peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
        return code, int(peak.split()[1]) >> 10


@contextlib.contextmanager
def _streams() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    with (
        open(os.memfd_create("out"), "w+b", buffering=0) as out,
        open(os.memfd_create("err"), "w+b", buffering=0) as err,
    ):
        yield out, err


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode(errors="surrogateescape")


def limit_memory(gigabytes: float) -> None:
    """Limit the address space of this process to what it has and some more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + int(gigabytes * GIGABYTE)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _wait(pid: int, began: float, seconds: float, stop: tuple[float, int] | None) -> tuple[int, int, bool]:
    """Wait for the end of a process: its status, the peak of its memory in kilobytes, and whether it was too slow."""
    descriptor = os.pidfd_open(pid)
    hung = False
    try:
        if stop and not _ends(descriptor, began + stop[0] - time.monotonic()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, stop[1])
        if not _ends(descriptor, began + seconds - time.monotonic()):
            hung = True
            os.killpg(pid, signal.SIGKILL)
        _, status, used = os.wait4(pid, 0)
    finally:
        os.close(descriptor)
    return status, used.ru_maxrss, hung


def _ends(descriptor: int, seconds: float) -> bool:
    return bool(select.select([descriptor], [], [], max(0.0, seconds))[0])


def adopt_orphans() -> None:
    """Become the parent of processes whose parent has ended, so that those which a command leaves behind are found."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with_parent() -> None:
    """Let this process be killed when the one that has forked it ends, however it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _children() -> set[int]:
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def _end_orphans(before: set[int]) -> int:
    """End what an ended command has left behind; processes have some seconds to end by themselves.

    Returns:
        The number of processes that had to be killed.
    """
    last = time.monotonic() + _GRACE
    killed: set[int] = set()
    while left := _children() - before:
        for pid in left:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG)[0]:
                    continue
            if time.monotonic() > last:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        time.sleep(0.005)
    return len(killed)


class ForkedChild(processes.ChildProcess):
    """A worker process that is forked instead of started, which saves the seconds that imports take."""

    def __init__(self, *arguments: str, environment: Mapping[str, str], errors: IO[Any]) -> None:
        self._process = _Forked(arguments[1], environment, errors)  # type: ignore[assignment]
        self._input, self._output, self._partial = self._process.stdin, self._process.stdout, b""  # type: ignore[assignment]


class _Forked:
    """As much of `subprocess.Popen` as `ChildProcess` uses."""

    def __init__(self, module: str, environment: Mapping[str, str], errors: IO[Any]) -> None:
        (child_in, self_out), (self_in, child_out) = os.pipe(), os.pipe()
        sys.stdout.flush()
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.setsid()
                signal.signal(signal.SIGINT, signal.default_int_handler)
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                take_streams(child_out, errors.fileno())
                os.dup2(child_in, 0)
                setattr(sys, "__stdout__", sys.stdout)  # noqa: B010 - the type is final; the messages to the parent go there
                os.closerange(3, 256)
                os.environ.clear()
                os.environ.update(environment)
                sys.argv = [module]
                runpy.run_module(module, run_name="__main__", alter_sys=True)
                code = 0
            except SystemExit as error:
                code = error.code if isinstance(error.code, int) else 1 if error.code else 0
            except BaseException:
                traceback.print_exc()
            finally:
                with contextlib.suppress(OSError):
                    sys.stderr.flush()
                os._exit(code)
        os.close(child_in)
        os.close(child_out)
        self.stdin, self.stdout = open(self_out, "wb"), open(self_in, "rb")  # noqa: SIM115

    def poll(self) -> int | None:
        return self._wait(os.WNOHANG)

    def wait(self) -> int | None:
        return self._wait(0)

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _wait(self, how: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, how)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def fork_workers() -> None:
    """Let studies of this process fork their workers."""
    from verydeep.studies.worker import _pool

    setattr(_pool, "ChildProcess", ForkedChild)  # noqa: B010 - not a public name of that module


def import_as(commands: Iterable[Sequence[str]], folder: Path) -> None:
    """Run commands in forked processes, and import what they have imported."""
    for arguments in commands:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            os.chdir(folder)
            with open(folder / "imports.log", "ab") as log:
                take_streams(log.fileno(), log.fileno())
            before = set(sys.modules)
            code = run_here(arguments)
            with open(write, "w") as file:
                json.dump({"code": code, "modules": [name for name in sys.modules if name not in before]}, file)
            os._exit(0)
        os.close(write)
        with open(read) as file:
            told = json.loads(file.read() or "{}")
        os.waitpid(pid, 0)
        if told.get("code") != 0:
            raise SystemExit(f"{' '.join(arguments)}: {(folder / 'imports.log').read_text()[-3000:]}")
        for name in told["modules"]:
            if "." not in name or not name.startswith(("__main__", "torch.ops", "torch.classes")):
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
