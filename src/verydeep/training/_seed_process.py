"""The process that trains one seed: a fresh interpreter, because a fork of one that runs threads may hang."""

import subprocess
from pathlib import Path

from verydeep.processes import python_command


class SeedProcess:
    """Trains one seed, saves and ends when its input is closed; so also when the process that started it is gone."""

    def __init__(self, folder: Path, seed: int, root: str | Path | None, tensorboard: bool) -> None:
        self.log = folder / f"seed-{seed}.log"
        command = python_command("-m", "verydeep.training._seed_worker", str(folder), str(seed))
        command += [str(root) if root else "", "tensorboard" if tensorboard else ""]
        with self.log.open("wb") as log:
            # A session of its own, so that Ctrl-C reaches only us; we pass it on once.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    @property
    def has_ended(self) -> bool:
        """Whether it has."""
        return self._process.poll() is not None

    @property
    def problem(self) -> str:
        """Why it ended before its run did; empty when all is well or someone stopped it."""
        code = self._process.wait()
        self.stop()
        if code in (0, 130):
            return ""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"its process ended with {code}; out of memory?"

    def stop(self) -> None:
        """Ask it to save and end."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        """End it now; its run continues from the last checkpoint."""
        self._process.kill()
        self._process.wait()
        self.stop()
