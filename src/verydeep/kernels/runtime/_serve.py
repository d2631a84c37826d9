"""The kernel with which a thread works: it takes jobs from a table until none is left."""

from verydeep.kernels.ir._control import loop, when
from verydeep.kernels.ir._kernel import call_address, kernel
from verydeep.kernels.ir._values import IntPtr
from verydeep.kernels.runtime._threads import ARGUMENTS


@kernel
def serve(table: IntPtr) -> None:
    """Take the next job of a table, as `_threads` describes it, until none is left."""
    jobs = table[1]
    bounds = table + 2
    calls = bounds + (jobs + 1)
    with loop(jobs):
        job = table.fetch_add(1)
        with when(job < jobs):
            first, last = bounds[job], bounds[job + 1]
            with loop(last - first) as n:
                row = calls + (first + n) * (1 + ARGUMENTS)
                call_address(row[0], [row[1 + i] for i in range(ARGUMENTS)])
