"""Start Python processes that never import from the directory they are started in.

Without `-P`, `python -m` and `python -c` look for every module in the working directory first: a file called
`random.py` there would be run. All Python processes are started by this module; `tests/test_layout.py` enforces it.
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

_VARIABLE = "PYTHONSAFEPATH"  # the equivalent of -P for multiprocessing, which builds its own command
_environment_lock = Lock()


def python_command(*arguments: str) -> list[str]:
    """Return the command that runs this Python with the arguments, such as `-m` and the name of a module."""
    return [sys.executable, "-P", *arguments]


def spawn(target: Callable[..., None], *arguments: object) -> SpawnProcess:
    """Call a function in a fresh interpreter, as a daemon process of multiprocessing.

    Args:
        target: A module-level function.
        arguments: Its arguments, which may include connections.

    Returns:
        The started process.
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
