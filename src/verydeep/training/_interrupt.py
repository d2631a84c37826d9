"""Ctrl-C once to stop at the next step and save; twice to quit at once."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Whether someone asked to stop."""

    requested = False


_outer: Interrupt | None = None  # of the main thread


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Note SIGINT and SIGTERM instead of dying of them; the second one works as usual.

    Inside of another one it is the same: who asks to stop a part asks to stop the whole.
    """
    global _outer  # noqa: PLW0603
    if threading.current_thread() is not threading.main_thread():  # only the main thread can have handlers
        yield Interrupt()
        return
    if _outer is not None:
        yield _outer
        return
    interrupt = _outer = Interrupt()
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}

    def handle(number: int, frame: FrameType | None) -> None:
        interrupt.requested = True
        if sys.stderr.isatty():  # written past Python's buffers, which may be in use right now
            os.write(2, b"\nstopping after this step; press Ctrl-C again to quit at once\n")
        for each, handler in before.items():
            signal.signal(each, handler)

    for number in signals:
        signal.signal(number, handle)
    try:
        yield interrupt
    finally:
        _outer = None
        for number, handler in before.items():
            signal.signal(number, handler)
