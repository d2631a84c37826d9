"""Kernels on several cores: jobs, each a list of kernel calls, that threads take one after the other.

Where torch's threads are OpenMP's (GOMP_parallel), jobs run on them: they wait busily between operations, and threads
of our own would have to share their cores. Elsewhere, and after a fork, which OpenMP's threads do not survive, jobs run
on threads of our own.

Jobs are passed to the threads in a table of int64: the number of jobs taken, the number of jobs, the number of the
first call of each job (and the end of the last job), then the calls, each a kernel's address and its arguments, padded.
"""

import ctypes
import os
from collections.abc import Callable, Sequence
from functools import cache
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from verydeep.kernels.runtime._compile import Function

ARGUMENTS = 12  # of the kernel with the most

Call = tuple["Function", tuple[int, ...]]  # a kernel and its arguments
Job = Sequence[Call]


def run_together(jobs: Sequence[Job]) -> None:
    """Run jobs concurrently, the calls of each job in order, and return when all are done."""
    if len(jobs) == 1:
        for function, arguments in jobs[0]:
            function(*arguments)
        return
    serve, table = _serve(), _table(jobs)
    if _state.openmp is not None:
        _state.openmp(serve.address, table.ctypes.data, len(jobs), 0)
    else:
        _state.pool.run(lambda: serve(table.ctypes.data), len(jobs))


@cache
def _serve() -> "Function":
    from verydeep.kernels.runtime._compile import compile_kernels
    from verydeep.kernels.runtime._serve import serve

    return compile_kernels("serve", [serve])[0]


def _table(jobs: Sequence[Job]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """The table that the kernel `serve` reads."""
    bounds = np.cumsum([0, *(len(job) for job in jobs)]).tolist()
    rows = [
        [function.address, *arguments, *[0] * (ARGUMENTS - len(arguments))]
        for job in jobs
        for function, arguments in job
    ]
    return np.array([0, len(jobs), *bounds, *(number for row in rows for number in row)], dtype=np.int64)


class _Threads:
    """Daemon threads that wait for work."""

    def __init__(self) -> None:
        self.work: SimpleQueue[tuple[Callable[[], None], SimpleQueue[None]]] = SimpleQueue()
        self.started = 0
        self.lock = Lock()

    def run(self, work: Callable[[], None], threads: int) -> None:
        """Run `work` in this number of threads at once, including the calling thread."""
        with self.lock:
            for _ in range(self.started, threads - 1):
                Thread(target=self._wait, name="verydeep-kernel", daemon=True).start()
                self.started += 1
        done: SimpleQueue[None] = SimpleQueue()
        for _ in range(threads - 1):
            self.work.put((work, done))
        work()
        for _ in range(threads - 1):
            done.get()

    def _wait(self) -> None:
        while True:
            work, done = self.work.get()
            work()
            done.put(None)


class _State:
    """The threads of this process: OpenMP's if they can be used, and our own."""

    def __init__(self, forked: bool = False) -> None:
        self.pool = _Threads()
        self.openmp = None if forked else _find_openmp()


def _find_openmp() -> Callable[..., None] | None:
    try:
        parallel = ctypes.CDLL(None).GOMP_parallel
    except (AttributeError, OSError, TypeError):  # another system, or a torch without OpenMP
        return None
    parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    parallel.restype = None
    return parallel


_state = _State()


def _after_fork() -> None:
    global _state  # noqa: PLW0603 - the threads belong to the parent process
    _state = _State(forked=True)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
