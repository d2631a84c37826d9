"""Processor settings while our code runs: the number of threads, and denormal numbers treated as zero.

Vanishing gradients become denormal numbers, on which x86 processors are ten times slower. Everything in the library
that computes runs inside `cpu_settings`, so a call from Python gives the same bits as a command and leaves the process
unchanged.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cpu_settings(threads: int | None = None) -> Iterator[None]:
    """Treat denormal numbers as zero and use `threads` threads (by default, as many as before) inside the block."""
    import torch

    flushed, before = flushes_denormals(), torch.get_num_threads()
    if threads is not None:
        torch.set_num_threads(threads)
    _flush_denormals(True)
    try:
        yield
    finally:
        _flush_denormals(flushed)
        if threads is not None:
            torch.set_num_threads(before)


def flushes_denormals() -> bool:
    """Whether this thread treats denormal numbers as zero; torch can set this but not report it."""
    import torch

    return bool(torch.full((), 1e-38) * 0.01 == 0)


def _flush_denormals(flush: bool) -> None:
    """Flush denormal numbers, or stop doing so, in this thread and in torch's OpenMP threads.

    OpenMP threads inherit the setting when they are started and keep it; torch.set_flush_denormal changes the calling
    thread only. Without this, results would depend on what was computed before.
    """
    import torch

    torch.set_flush_denormal(flush)
    if torch.get_num_threads() == 1 or _forked:
        return
    try:
        parallel = ctypes.CDLL(None).GOMP_parallel
    except (AttributeError, OSError, TypeError):  # another operating system, or a torch without OpenMP
        return

    def set_thread(_: object) -> None:
        torch.set_flush_denormal(flush)

    parallel(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(set_thread), None, torch.get_num_threads(), 0)


_forked = False  # OpenMP's threads do not survive a fork, and waiting for them would hang


def _note_fork() -> None:
    global _forked  # noqa: PLW0603
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
