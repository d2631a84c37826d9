"""Python processes of ours, which never import from the directory they are started in.

Without `-P`, `python -m` and `python -c` look for every module in the working directory first: a file there that is
called `random.py` would be run. Whatever starts a Python process uses this module; `tests/test_layout.py` checks it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

_VARIABLE = "PYTHONSAFEPATH"  # is to multiprocessing, which builds its own command, what -P is to us
_environment_lock = Lock()


def python_command(*arguments: str) -> list[str]:
    """Return the command that runs this Python with the arguments, such as `-m` and the name of a module."""
    return [sys.executable, "-P", *arguments]


def spawn(target: Callable[..., None], *arguments: object) -> SpawnProcess:
    """Call a function in a fresh interpreter, as a daemon process of multiprocessing.

    Args:
        target: A function of a module, not a local one.
        arguments: What it is called with, connections included.

    Returns:
        The process, started.
    """
    from multiprocessing import get_context

    process = get_context("spawn").Process(target=target, args=arguments, daemon=True)
    with _safe_path():
        process.start()
    return process


@contextmanager
def _safe_path() -> Iterator[None]:
    """Set the variable for new processes, including the resource tracker that multiprocessing starts for itself."""
    with _environment_lock:
        before = os.environ.get(_VARIABLE)
        os.environ[_VARIABLE] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_VARIABLE]
            else:
                os.environ[_VARIABLE] = before
