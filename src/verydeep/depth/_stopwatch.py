"""The time that a study about depth has taken, over all calls."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from verydeep.files import read_json, write_atomic

_SAVE_EVERY = 5.0  # seconds


class Stopwatch:
    """Adds up the time of all calls with a folder; what lies between them does not count.

    A call that is killed loses the time since it last saved.

    Args:
        folder: The folder; it holds the time as `elapsed.json`.
        began: When this call began.
        now: Returns the time in seconds.
    """

    def __init__(self, folder: Path, began: float, now: Callable[[], float] = time.monotonic) -> None:
        self.file, self.began, self.now = folder / "elapsed.json", began, now
        before = read_json(self.file).get("seconds") if self.file.exists() else None
        self.before = float(before) if isinstance(before, int | float) else 0.0
        self.saved = self.before

    @property
    def seconds(self) -> float:
        """The time of all calls so far."""
        return self.before + self.now() - self.began

    def save(self) -> None:
        """Save the time, unless that was done a moment ago."""
        seconds = self.seconds
        if seconds - self.saved >= _SAVE_EVERY:
            write_atomic(self.file, json.dumps({"seconds": round(seconds, 3)}) + "\n")
            self.saved = seconds
