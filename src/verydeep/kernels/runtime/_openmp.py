"""The threads of GNU's OpenMP, which are torch's on Linux."""

import ctypes
import os
from collections.abc import Callable
from threading import Event, Thread

from verydeep.kernels.runtime._pool import pool_kernels
from verydeep.kernels.runtime._table import Table


class OpenMP:
    """Runs jobs on OpenMP's threads.

    Between two operations these threads wait busily for some milliseconds. Nothing is faster on cores that they have to
    themselves; on cores that others use too, they use up their share of time by waiting. OpenMP waits only a few
    microseconds, then sleeps, while the process has more of its threads than cores: see `shorten_waits`.

    Raises:
        OSError: This system or this torch has no GNU OpenMP.
    """

    def __init__(self) -> None:
        try:
            library = ctypes.CDLL(None)
            self._parallel = library.GOMP_parallel
            self._nothing = ctypes.cast(library.sched_yield, ctypes.c_void_p)
        except (AttributeError, TypeError) as error:
            raise OSError("no GNU OpenMP") from error
        self._parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        self._parallel.restype = None
        self._more_threads: _Parked | None = None

    def run(self, table: Table) -> None:
        """Run all jobs of a table, one thread each, and wait for all threads."""
        self._parallel(pool_kernels().serve.address, table.ctypes.data, int(table[1]), 0)

    def shorten_waits(self) -> None:
        """Let all OpenMP threads of the process, torch's too, wait briefly and then sleep."""
        if self._more_threads is None:
            threads = (os.cpu_count() or 1) + 1
            self._more_threads = _Parked(lambda: self._parallel(self._nothing, None, threads, 0))

    def restore_waits(self) -> None:
        """Let OpenMP threads wait as they did before `shorten_waits`."""
        if self._more_threads is not None:
            self._more_threads.end()
            self._more_threads = None


class _Parked:
    """A thread that starts something at once and then sleeps: OpenMP's threads of a thread live as long as it does."""

    def __init__(self, start: Callable[[], None]) -> None:
        self._started, self._ended = Event(), Event()
        self._thread = Thread(target=self._run, args=(start,), name="verydeep-parked", daemon=True)
        self._thread.start()
        self._started.wait()

    def _run(self, start: Callable[[], None]) -> None:
        start()
        self._started.set()
        self._ended.wait()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()
