"""Transposes of matrices."""

from functools import cache

from verydeep.kernels.ir._ir import (
    LANES,
    NUMBER,
    REGISTER,
    Kernel,
    N,
    each,
    load,
    load_number,
    shuffle,
    store,
    store_number,
)


@cache
def make_turn() -> Kernel:
    """`turn(a, a_step, b, b_step, rows, columns)`: b is the transpose of a, computed in squares of registers.

    Steps are distances of rows in bytes; the rows and columns of a are counted in whole registers.
    """
    square = Kernel("square", 4, _square)

    def emit(a: N, a_step: N, b: N, b_step: N, rows: N, columns: N) -> None:
        def row(i: N) -> None:
            def column(j: N) -> None:
                square(a + i * a_step * LANES + j * REGISTER, a_step, b + j * b_step * LANES + i * REGISTER, b_step)

            each(columns, column)

        each(rows, row)

    return Kernel("turn", 6, emit)


def make_turn_all() -> Kernel:
    """`turn_all(a, a_step, b, b_step, rows, columns)`: `turn` for any number of rows and columns."""
    turn = make_turn()

    def emit(a: N, a_step: N, b: N, b_step: N, rows: N, columns: N) -> None:
        down, across = rows // LANES, columns // LANES
        turn(a, a_step, b, b_step, down, across)
        done, right = down * LANES, columns - across * LANES
        _turn_numbers(a + across * REGISTER, a_step, b + across * b_step * LANES, b_step, done, right)
        _turn_numbers(a + done * a_step, a_step, b + done * NUMBER, b_step, rows - done, columns)

    return Kernel("turn_all", 6, emit)


def _turn_numbers(a: N, a_step: N, b: N, b_step: N, rows: N, columns: N) -> None:
    """Transpose number by number."""

    def row(i: N) -> None:
        def number(j: N) -> None:
            store_number(load_number(a + i * a_step + j * NUMBER), b + j * b_step + i * NUMBER)

        each(columns, number)

    each(rows, row)


def _square(a: N, a_step: N, b: N, b_step: N) -> None:
    """Transpose one square of registers."""
    builder = a.builder
    rows = [load(a + a_step * i) for i in range(LANES)]
    distance = LANES // 2
    while distance:  # swap the off-diagonal quarters of ever smaller squares
        for i in (i for i in range(LANES) if not i & distance):
            upper, lower = rows[i], rows[i + distance]
            first = [n if not n & distance else LANES + n - distance for n in range(LANES)]
            second = [n + distance if not n & distance else LANES + n for n in range(LANES)]
            rows[i] = shuffle(builder, upper, lower, first)
            rows[i + distance] = shuffle(builder, upper, lower, second)
        distance //= 2
    for i, row in enumerate(rows):
        store(row, b + b_step * i)
