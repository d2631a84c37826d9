"""Jobs, each a list of kernel calls, and the table in which threads find them.

A table consists of int64: the number of jobs taken, the number of jobs, the number of the first call of each job (and
the end of the last job), then the calls, each a kernel's address and its arguments, padded.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from verydeep.kernels.runtime._compile import Function

ARGUMENTS = 16  # of the kernel with the most

Call = tuple["Function", tuple[int, ...]]  # a kernel and its arguments
Job = Sequence[Call]
Table = np.ndarray[tuple[int], np.dtype[np.int64]]


def make_table(jobs: Sequence[Job]) -> Table:
    """The table that the kernel `serve` reads."""
    bounds = np.cumsum([0, *(len(job) for job in jobs)]).tolist()
    rows = [
        [function.address, *arguments, *[0] * (ARGUMENTS - len(arguments))]
        for job in jobs
        for function, arguments in job
    ]
    return np.array([0, len(jobs), *bounds, *(number for row in rows for number in row)], dtype=np.int64)
