"""Ctrl-C: once stops after the current step and saves, twice quits at once. So do SIGTERM and a closed terminal."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Whether someone asked to stop.

    Attributes:
        requested: Whether someone did.
        is_displayed: Whether a display shows that; otherwise a line is printed, which would end up in the display.
    """

    requested = False
    is_displayed = False


_HANGUP = getattr(signal, "SIGHUP", None)  # Windows has none
_SIGNALS = (signal.SIGINT, signal.SIGTERM, *(() if _HANGUP is None else (_HANGUP,)))
_outer: Interrupt | None = None  # the main thread's


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Record the first SIGINT, SIGTERM or SIGHUP instead of being terminated by it; the second one works as usual.

    SIGHUP comes from a closed terminal, often several times; it stays ignored if it was, as under nohup. Nested
    contexts share one interrupt flag. The previous signal handlers are restored at the end.
    """
    global _outer  # noqa: PLW0603
    if threading.current_thread() is not threading.main_thread():  # only the main thread can have signal handlers
        yield Interrupt()
        return
    if _outer is not None:
        yield _outer
        return
    interrupt = _outer = Interrupt()
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    before = {number: handler for number, handler in handlers.items() if handler is not None}  # None: not Python's
    if _HANGUP is not None and before.get(_HANGUP) == signal.SIG_IGN:
        del before[_HANGUP]
    terminals = [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]

    def restore() -> None:
        for each, handler in before.items():
            signal.signal(each, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        interrupt.requested = True
        restore()
        if number == _HANGUP:
            _discard_output(terminals)
            signal.signal(number, signal.SIG_IGN)
        elif sys.stderr.isatty() and not interrupt.is_displayed:
            # Written past Python's buffers, which may be in use right now.
            os.write(2, b"\nstopping after this step; press Ctrl-C again to quit at once\n")
        if before.get(signal.SIGINT) == signal.SIG_IGN:  # as in a shell's background jobs
            signal.signal(signal.SIGINT, signal.default_int_handler)

    for number in before:
        signal.signal(number, handle)
    try:
        yield interrupt
    finally:
        _outer = None
        restore()


def _discard_output(descriptors: list[int]) -> None:
    """Send what is written to a closed terminal to the null device instead; writing there would be an error."""
    null = os.open(os.devnull, os.O_WRONLY)
    for descriptor in descriptors:
        os.dup2(null, descriptor)
    os.close(null)
