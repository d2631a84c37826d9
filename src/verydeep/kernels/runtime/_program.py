"""Kernel calls that are repeated many times without Python in between."""

from collections.abc import Sequence

from verydeep.kernels.runtime._table import Job, Table, make_table
from verydeep.kernels.runtime._threads import repeat_tables


class Program:
    """Phases that run one after the other, each of them jobs that run together.

    The arguments of its calls never change. What differs between two repetitions is in the memory that they refer to.

    Attributes:
        phases: The phases.
    """

    def __init__(self, phases: Sequence[Sequence[Job]]) -> None:
        self.phases = _joined(phases)
        self._tables: list[Table] = [make_table(jobs) for jobs in self.phases]

    def run(self, times: int) -> None:
        """Run all phases this many times."""
        repeat_tables(self._tables, times)


def _joined(phases: Sequence[Sequence[Job]]) -> list[list[Job]]:
    """The phases, with neighbours of a single job each as one."""
    joined: list[list[Job]] = []
    for jobs in phases:
        if joined and len(joined[-1]) == len(jobs) == 1:
            joined[-1] = [[*joined[-1][0], *jobs[0]]]
        else:
            joined.append(list(jobs))
    return joined
