"""The kernels with which threads work off tables of jobs, as `_threads` describes it."""

from verydeep.kernels.ir._control import loop, when
from verydeep.kernels.ir._kernel import call_address, kernel
from verydeep.kernels.ir._values import Int, IntPtr
from verydeep.kernels.runtime._table import ARGUMENTS

STARTER = 4  # integers: the function that runs a table, and its arguments


@kernel
def run_job(table: IntPtr, job: Int) -> None:
    """Run the calls of one job of a table in order."""
    bounds = table + 2
    calls = bounds + (table[1] + 1)
    first, last = bounds[job], bounds[job + 1]
    with loop(last - first) as n:
        row = calls + (first + n) * (1 + ARGUMENTS)
        call_address(row[0], [row[1 + i] for i in range(ARGUMENTS)])


@kernel
def serve(table: IntPtr) -> None:
    """Take the next job of a table until none is left."""
    jobs = table[1]
    with loop(jobs):
        job = table.fetch_add(1)
        with when(job < jobs):
            run_job(table, job)


@kernel
def repeat(tables: IntPtr, starters: IntPtr, count: Int, times: Int) -> None:
    """Run several tables one after the other, all of them this many times.

    `tables` are their addresses. A starter runs a table: a function of up to three integers, and these integers.
    """
    with loop(times), loop(count) as n:
        table, starter = IntPtr(tables[n].handle), starters + n * STARTER
        table.fetch_add(0 - table[0])  # no job is taken
        call_address(starter[0], [starter[1 + i] for i in range(STARTER - 1)])
