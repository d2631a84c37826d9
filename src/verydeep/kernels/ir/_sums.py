"""Sums over the rows of a matrix."""

from verydeep.kernels.ir._control import Variable, loop
from verydeep.kernels.ir._kernel import kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._values import Int, Matrix, Ptr
from verydeep.kernels.ir._vector import load, store


@kernel
def add_rows_to(matrix: Matrix, rows: Int, vectors: Int, totals: Ptr) -> None:
    """Add all rows of a matrix, from first to last, to one row of totals; rows have `vectors` registers."""
    with loop(vectors) as n:
        column = n * LANES
        total = Variable(load(totals + column))
        with loop(rows) as i:
            total.value = total.value.accumulate(load(matrix.row(i) + column))
        store(totals + column, total.value)
