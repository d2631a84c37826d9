"""Transposes of matrices."""

from verydeep.kernels.ir._control import loop, when
from verydeep.kernels.ir._kernel import kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._values import Int, Matrix
from verydeep.kernels.ir._vector import Vec, load, load_lanes, load_number, shuffle, store, store_number


@kernel
def transpose(a: Matrix, b: Matrix, rows: Int, columns: Int) -> None:
    """Make b the transpose of a, for any number of rows and columns of a."""
    down, across = rows // LANES, columns // LANES
    transpose_squares(a, b, down, across)
    done, right = down * LANES, columns - across * LANES
    with when(right != 0), loop(down) as i:
        _transpose_strip(a.submatrix(i * LANES, across * LANES), b.submatrix(across * LANES, i * LANES), right)
    _transpose_numbers(a.submatrix(done), b.submatrix(column=done), rows - done, columns)


@kernel
def transpose_squares(a: Matrix, b: Matrix, down: Int, across: Int) -> None:
    """Make b the transpose of a, which is `down` times `across` squares of LANES rows and LANES columns."""
    with loop(down) as i, loop(across) as j:
        _transpose_square(a.submatrix(i * LANES, j * LANES), b.submatrix(j * LANES, i * LANES))


def _transpose_numbers(a: Matrix, b: Matrix, rows: Int, columns: Int) -> None:
    """Transpose number by number."""
    with loop(rows) as i, loop(columns) as j:
        number = load_number(a.row(i) + j)
        store_number(b.row(j) + i, number)


@kernel
def _transpose_square(a: Matrix, b: Matrix) -> None:
    """Transpose one square of registers."""
    for i, row in enumerate(_transposed([load(a.row(i)) for i in range(LANES)])):
        store(b.row(i), row)


@kernel
def _transpose_strip(a: Matrix, b: Matrix, columns: Int) -> None:
    """Transpose LANES rows of fewer columns."""
    for i, row in enumerate(_transposed([load_lanes(a.row(i), columns) for i in range(LANES)])):
        with when(columns > i):
            store(b.row(i), row)


def _transposed(rows: list[Vec]) -> list[Vec]:
    """The columns of a square of registers."""
    distance = LANES // 2
    while distance:  # swap the off-diagonal quarters of ever smaller squares
        for i in (i for i in range(LANES) if not i & distance):
            upper, lower = rows[i], rows[i + distance]
            first = [n if not n & distance else LANES + n - distance for n in range(LANES)]
            second = [n + distance if not n & distance else LANES + n for n in range(LANES)]
            rows[i] = shuffle(upper, lower, first)
            rows[i + distance] = shuffle(upper, lower, second)
        distance //= 2
    return rows
