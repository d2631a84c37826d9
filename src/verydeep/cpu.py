"""How the processor computes while our code runs: its number of threads, and denormal numbers as zero.

Gradients that vanish become denormal numbers, on which x86 processors are ten times slower. Everything in the library
that computes runs inside `cpu_settings`, so a call from Python gives the same bits as a command and leaves the process
as it was.
"""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cpu_settings(threads: int | None = None) -> Iterator[None]:
    """Treat denormal numbers as zero and use `threads` threads (by default, as many as before) inside the block."""
    import torch

    flushed, before = _flushes_denormals(), torch.get_num_threads()
    torch.set_flush_denormal(True)
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_flush_denormal(flushed)
        if threads is not None:
            torch.set_num_threads(before)


def _flushes_denormals() -> bool:
    """Whether this thread treats denormal numbers as zero; torch can set this but not tell."""
    import torch

    return bool(torch.full((), 1e-38) * 0.01 == 0)
