"""Matrices of bfloat16 for products: pairs of numbers whose products are added, each in the space of one number."""

from verydeep.kernels.ir._control import loop, when
from verydeep.kernels.ir._elementwise import make_rowwise
from verydeep.kernels.ir._kernel import kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._values import Int, Matrix
from verydeep.kernels.ir._vector import Vec, load, load_lanes, round_lanes, round_neighbours, store

_pair_two_rows = make_rowwise("pair_two_rows", lambda a, b: (round_lanes(a, b),), inputs=2, outputs=1)
_pair_one_row = make_rowwise("pair_one_row", lambda a: (round_lanes(a, Vec.zeros()),), inputs=1, outputs=1)


@kernel
def pair_rows(a: Matrix, b: Matrix, rows: Int, columns: Int) -> None:
    """Each number of b becomes a pair of numbers of a, one below the other; in the last row 0 may be the second."""
    half = rows // 2
    upper, lower = (Matrix(a.row(i), a.row_stride * 2) for i in range(2))
    _pair_two_rows(half, columns, upper, lower, b)
    _pair_one_row(rows - half * 2, columns, upper.submatrix(half), b.submatrix(half))


@kernel
def pair_columns(a: Matrix, b: Matrix, rows: Int, columns: Int) -> None:
    """Each number of b becomes a pair of neighbours in a row of a; the rows of b are whole registers, filled with 0."""
    registers = columns // (2 * LANES)
    done = registers * 2 * LANES
    rest = columns - done
    with loop(rows) as i:
        first, second, to = a.row(i), a.row(i) + LANES, b.row(i)
        with loop(registers) as n:
            start = n * 2 * LANES
            store(to + n * LANES, round_neighbours(load(first + start), load(second + start)))
        with when(rest >= LANES):
            store(to + registers * LANES, round_neighbours(load(first + done), load_lanes(second + done, rest - LANES)))
        with when(rest < LANES), when(rest != 0):
            store(to + registers * LANES, round_neighbours(load_lanes(first + done, rest), Vec.zeros()))
