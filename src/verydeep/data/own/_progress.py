"""Progress of reading: whoever shows it listens, and readers report."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_listener: ContextVar[Callable[[str, float], None] | None] = ContextVar("listener", default=None)


@contextmanager
def reading_progress(listener: Callable[[str, float], None]) -> Iterator[None]:
    """Call `listener(name of the file, fraction read)` now and then while files are read in the body."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report_progress(path: Path | str, position: int) -> None:
    """Tell the listener, if there is one, how many bytes of a file have been read."""
    if _listener.get() is not None and isinstance(path, Path):
        size = path.stat().st_size
        report_fraction(path.name, min(1.0, position / size) if size else 1.0)


def report_fraction(name: str, fraction: float) -> None:
    """Tell the listener, if there is one, which fraction of a file or folder has been read."""
    listener = _listener.get()
    if listener is not None:
        listener(name, fraction)
