"""PostgreSQL servers killed under load: a search of 24 trials with two workers, whose server dies five times.

Workers are killed at the same time, now and then. No training may be lost or counted twice, and all must have the
results of a search that nobody disturbed, bit for bit.
"""

import atexit
import random
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from _disturbed import Outcome, is_same, outcome
from _postgres import Server, installed
from study_kills import Command, kill_server, undisturbed


@cache
def _server() -> Server | None:
    binaries = installed()
    if binaries is None:
        return None
    server = Server(binaries).__enter__()
    atexit.register(server.__exit__, None, None, None)
    return server


@cache
def _calm(folder: Path) -> Outcome:
    return undisturbed("search", folder)


def trial(scratch: Path, draw: random.Random) -> dict[str, Any]:
    """One search whose server is killed five times."""
    server = _server()
    if server is None:
        return {"verdict": "skipped: no PostgreSQL"}
    folder = scratch / "servers"
    shutil.rmtree(folder / "disturbed", ignore_errors=True)
    expected = _calm(folder / "calm")
    command = Command("search", folder / "disturbed", server.new_database())
    done = kill_server(command, server, draw)
    compared = outcome(command.place).compared(expected)
    return done | compared | {"verdict": "same" if is_same(compared) else "wrong"}
