"""Ctrl-C: once stops after the current step and saves, twice quits at once."""

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


_outer: Interrupt | None = None  # the main thread's


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Record the first SIGINT or SIGTERM instead of being terminated by it; the second one works as usual.

    Nested contexts share one interrupt flag. The previous signal handlers are restored at the end.
    """
    global _outer  # noqa: PLW0603
    if threading.current_thread() is not threading.main_thread():  # only the main thread can have signal handlers
        yield Interrupt()
        return
    if _outer is not None:
        yield _outer
        return
    interrupt = _outer = Interrupt()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in handlers.items() if handler is not None}  # None: not Python's

    def restore() -> None:
        for each, handler in before.items():
            signal.signal(each, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        interrupt.requested = True
        if sys.stderr.isatty() and not interrupt.is_displayed:
            # Written past Python's buffers, which may be in use right now.
            os.write(2, b"\nstopping after this step; press Ctrl-C again to quit at once\n")
        restore()
        if before.get(signal.SIGINT) == signal.SIG_IGN:  # as in a shell's background jobs
            signal.signal(signal.SIGINT, signal.default_int_handler)

    for number in before:
        signal.signal(number, handle)
    try:
        yield interrupt
    finally:
        _outer = None
        restore()
