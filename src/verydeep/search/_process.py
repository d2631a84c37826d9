"""A worker in a process of its own: a fresh interpreter, because a fork of one that runs threads may hang."""

import json
import os
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from verydeep.files import make_folder
from verydeep.processes import python_command


class WorkerProcess:
    """Works until the study is complete, or saves and ends when its input is closed; so also when we are gone."""

    def __init__(self, folder: Path, number: int, options: dict[str, object]) -> None:
        self.log = folder / "workers" / f"{socket.gethostname()}-{os.getpid()}-{number}.log"
        make_folder(self.log.parent)
        command = python_command("-m", "verydeep.search._process_main", str(folder))
        with self.log.open("wb") as log:
            # A session of its own, so that Ctrl-C reaches only us; we pass it on once.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.pid = self._process.pid
        assert self._process.stdin is not None
        # By its input, not by its arguments, which everyone on the machine can read: there may be a password.
        with suppress(BrokenPipeError):  # it has died already, which whoever waits for it will see
            self._process.stdin.write(json.dumps(options).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def code(self) -> int | None:
        """How it ended: 0, 2 for what the user can mend, less than 0 when it was killed; None while it has not."""
        return self._process.poll()

    @property
    def problem(self) -> str:
        """What it said last."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"its process ended with {self.code}"

    def stop(self) -> None:
        """Ask it to save and end."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def kill(self) -> None:
        """End it now; its trial goes on from the last checkpoint."""
        self._process.kill()
        self._process.wait()
        self.stop()
