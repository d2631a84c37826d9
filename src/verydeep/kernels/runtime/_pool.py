"""Threads of our own that help the calling thread with its jobs when they have a core."""

import ctypes
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from threading import Lock, Thread
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verydeep.cpu import usable_cores
from verydeep.kernels.runtime._table import Table

if TYPE_CHECKING:
    from verydeep.kernels.runtime._compile import Function

_INTEGER = 8  # bytes


class PoolKernels(NamedTuple):
    """The compiled kernels of `_serve` and `_pool_loops`."""

    serve: "Function"
    repeat: "Function"
    lead: "Function"
    follow: "Function"


@cache
def pool_kernels() -> PoolKernels:
    """Compile the kernels that run jobs, or load them."""
    from verydeep.kernels.runtime._compile import compile_kernels
    from verydeep.kernels.runtime._pool_loops import follow, lead
    from verydeep.kernels.runtime._serve import repeat, serve

    return PoolKernels(*compile_kernels("serve", [serve, repeat, lead, follow]))


def run_repeatedly(tables: Sequence[Table], times: int, shared: int | None = None) -> None:
    """Run tables one after the other, all of them this many times.

    Args:
        tables: The tables.
        times: How often.
        shared: The address of the memory of the pool that helps; None if the calling thread runs them alone.
    """
    kernels, starters = pool_kernels(), []
    for table in tables:
        address, jobs = table.ctypes.data, int(table[1])
        alone = shared is None or jobs == 1
        starters.append(
            [kernels.serve.address, address, 0, 0] if alone else [kernels.lead.address, shared, address, jobs]
        )
    addresses = np.array([table.ctypes.data for table in tables])
    rows = np.array(starters, dtype=np.int64)
    kernels.repeat(addresses.ctypes.data, rows.ctypes.data, len(tables), times)


class ThreadPool:
    """Runs jobs in the calling thread and in daemon threads that are started when they are first needed.

    Args:
        most_helpers: The number of these threads, at most; by default, one less than this process has cores.
    """

    def __init__(self, most_helpers: int | None = None) -> None:
        self._most_helpers = most_helpers
        self._helpers: list[Thread] = []
        self._shared: _Shared | None = None
        self._lock = Lock()

    def run(self, table: Table) -> None:
        """Run all jobs of a table. While another thread uses the pool, the calling thread runs them alone."""
        with self._leading(int(table[1])) as shared:
            if shared is None:
                pool_kernels().serve(table.ctypes.data)
            else:
                pool_kernels().lead(shared, table.ctypes.data, int(table[1]))

    def repeat(self, tables: Sequence[Table], times: int) -> None:
        """Run tables one after the other, all of them this many times, without Python in between."""
        with self._leading(max(int(table[1]) for table in tables)) as shared:
            run_repeatedly(tables, times, shared)

    @contextmanager
    def _leading(self, jobs: int) -> Iterator[int | None]:
        """The address of the pool's memory for a thread that has jobs; None while another thread uses the pool."""
        if not self._lock.acquire(blocking=False):
            yield None
            return
        try:
            if self._shared is None:
                self._shared = _Shared()
            self._start_helpers(jobs - 1)
            yield self._shared.address
        finally:
            self._lock.release()

    def stop(self) -> None:
        """End the helpers; those that do not have a core at the moment end later."""
        if self._shared is not None:
            self._shared.stop(len(self._helpers))

    def _start_helpers(self, wanted: int) -> None:
        if self._most_helpers is None:
            self._most_helpers = usable_cores() - 1
        with suppress(RuntimeError):  # if the system allows no more threads, there are fewer helpers
            for _ in range(len(self._helpers), min(wanted, self._most_helpers)):
                self._helpers.append(self._start_helper())

    def _start_helper(self) -> Thread:
        assert self._shared is not None
        address, follow = self._shared.address, pool_kernels().follow
        thread = Thread(target=lambda: follow(address), name="verydeep-kernel", daemon=True)
        thread.start()
        return thread


class _Shared:
    """The memory that the threads of a pool share, with the functions that they call, and a pipe to wake them."""

    def __init__(self) -> None:
        from verydeep.kernels.runtime import _pool_loops as places

        library = ctypes.CDLL(None)
        library.calloc.restype = ctypes.c_void_p
        self.address = library.calloc(max(places.SIZE, places.MOST_WOKEN), _INTEGER)  # never freed: a helper may sleep
        self._memory = (ctypes.c_int64 * places.SIZE).from_address(self.address)
        self._read_from, self._write_to = os.pipe()
        os.set_blocking(self._write_to, False)
        values = {
            places.YIELD: _address(library.sched_yield),
            places.SLEEP: _address(library.usleep),
            places.CLOCK: _address(library.clock_gettime),
            places.WALL_CLOCK: time.CLOCK_MONOTONIC,
            places.CORE_CLOCK: time.CLOCK_THREAD_CPUTIME_ID,
            places.READ: _address(library.read),
            places.READ_FROM: self._read_from,
            places.WRITE: _address(library.write),
            places.WRITE_TO: self._write_to,
        }
        for place, value in values.items():
            self._memory[place] = value

    def stop(self, helpers: int) -> None:
        from verydeep.kernels.runtime._pool_loops import STOP

        self._memory[STOP] = 1
        with suppress(BlockingIOError):  # a full pipe wakes enough threads
            os.write(self._write_to, bytes(helpers))


def _address(function: Callable[..., object]) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
