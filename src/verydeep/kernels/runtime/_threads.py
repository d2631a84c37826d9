"""Kernels on several cores: jobs, each a list of kernel calls, that threads take one after the other.

How work is divided into jobs, and in which order their results are added up, follows from the number of threads that
torch was set to. Who runs a job does not matter for its result, so it may depend on the machine:

- Where torch's threads are OpenMP's, jobs run on them while this process has its cores to itself: they wait busily
  between operations, and threads of our own would have to share their cores.
- Where others want the same cores, OpenMP would have to wait for every thread that has lost its core. Jobs run on a
  pool then, whose threads take jobs when they have a core, and torch's threads wait briefly and sleep.
- The pool also runs them where there is no OpenMP, and after a fork, which OpenMP's threads do not survive. And it runs
  calls that are repeated many times without Python in between, because torch needs no thread meanwhile.
"""

import atexit
import os
import sys
from collections.abc import Sequence
from threading import Lock

from verydeep.kernels.runtime._contention import Contention
from verydeep.kernels.runtime._openmp import OpenMP
from verydeep.kernels.runtime._pool import ThreadPool, pool_kernels, run_repeatedly
from verydeep.kernels.runtime._table import Call, Job, Table, make_table

__all__ = ["Call", "Job", "repeat_tables", "restore_waits", "run_together"]


def run_together(jobs: Sequence[Job]) -> None:
    """Run jobs, the calls of each job in order, and return when all are done."""
    if len(jobs) == 1:
        for function, arguments in jobs[0]:
            function(*arguments)
    else:
        _threads.run(make_table(jobs))


def repeat_tables(tables: Sequence[Table], times: int) -> None:
    """Run tables of jobs one after the other, all of them this many times, without Python in between."""
    if any(table[1] > 1 for table in tables):
        _threads.repeat(tables, times)
    else:
        run_repeatedly(tables, times)


def restore_waits() -> None:
    """Let torch's threads wait as they did before kernels ran on cores that others use."""
    _threads.restore_waits()


class _Threads:
    """The threads of this process: OpenMP's if they can be used, and our own."""

    def __init__(self, forked: bool = False) -> None:
        self.pool = ThreadPool()
        self._openmp = None if forked else _find_openmp()
        self._contention, self._lock = Contention(), Lock()

    def run(self, table: Table) -> None:
        """Run all jobs of a table."""
        if sys.platform == "win32":  # the pool needs POSIX
            pool_kernels().serve(table.ctypes.data)
        elif self._openmp is None or self._is_contended(self._openmp):
            self.pool.run(table)
        else:
            self._openmp.run(table)

    def repeat(self, tables: Sequence[Table], times: int) -> None:
        """Run tables one after the other, all of them this many times."""
        if sys.platform == "win32":
            run_repeatedly(tables, times)
        else:
            self.pool.repeat(tables, times)

    def restore_waits(self) -> None:
        """Undo what `run` did to OpenMP; it does so again if necessary."""
        with self._lock:
            if self._openmp is not None:
                self._openmp.restore_waits()

    def _is_contended(self, openmp: OpenMP) -> bool:
        """Whether others want our cores; if so, let OpenMP's threads not wait busily."""
        with self._lock:
            contended = self._contention.noticed()
            if contended:
                openmp.shorten_waits()
            else:
                openmp.restore_waits()
        return contended


def _find_openmp() -> OpenMP | None:
    try:
        return OpenMP()
    except OSError:
        return None


_threads = _Threads()


def _after_fork() -> None:
    global _threads  # noqa: PLW0603 - the threads belong to the parent process
    _threads = _Threads(forked=True)


def _at_exit() -> None:
    _threads.pool.stop()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
