"""How many threads a run uses: chosen once, when it starts, and stored with it.

How sums are rounded depends on the number of threads, so a run keeps it, also when it is resumed on a busier machine.
"""

from typing import NamedTuple

import torch

from verydeep.cpu import idle_cores, usable_cores
from verydeep.files import read_json
from verydeep.training.run._run import Run
from verydeep.words import plural


class ChosenThreads(NamedTuple):
    """A number of threads and why it was chosen."""

    number: int
    reason: str


def choose_threads() -> ChosenThreads:
    """Choose as many threads as torch uses, but not more than there are free cores."""
    most = torch.get_num_threads()
    free = most if most == 1 else max(1, round(idle_cores()))  # with one thread there is nothing to choose
    if free >= most:
        return ChosenThreads(most, "as many as torch uses")
    return ChosenThreads(free, f"{free} of {plural(usable_cores(), 'core')} {'is' if free == 1 else 'are'} free")


def stored_threads(run: Run) -> int | None:
    """The number of threads that a run was started with; None if it was trained by several processes."""
    if run.config.threads is not None:
        return run.config.threads
    path = run.path / "environment.json"  # versions before 0.6 did not store the number that torch chose
    recorded = read_json(path) if path.exists() else {}
    threads = recorded.get("threads")
    return threads if isinstance(threads, int) and threads > 0 and recorded.get("processes", 1) == 1 else None
