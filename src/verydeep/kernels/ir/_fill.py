"""Memory filled with zeros."""

from verydeep.kernels.ir._control import loop
from verydeep.kernels.ir._kernel import kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._values import Int, Matrix, Ptr
from verydeep.kernels.ir._vector import Vec, store, store_number


@kernel
def zero_columns(matrix: Matrix, rows: Int, columns: Int) -> None:
    """Write zeros into the first columns of a matrix."""
    with loop(rows) as i, loop(columns) as j:
        store_number(matrix.row(i) + j, 0.0)


@kernel
def zero_vectors(ptr: Ptr, vectors: Int) -> None:
    """Write registers full of zeros from an address on."""
    with loop(vectors) as n:
        store(ptr + n * LANES, Vec.zeros())
