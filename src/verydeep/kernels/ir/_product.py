"""Matrix products, tile by tile: a tile's sums stay in registers."""

from functools import cache

from verydeep.kernels.ir._control import Variable, loop, when
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._processor import LANES, REGISTERS
from verydeep.kernels.ir._values import Int, Matrix, Ptr
from verydeep.kernels.ir._vector import Vec, broadcast, load, load_number, multiply_add, multiply_pairs, store

_SUMS = 12 if REGISTERS == 16 else 24  # registers that hold a tile's sums; the others hold what is multiplied


@cache
def make_product(transposed: bool = False, pairs: bool = False) -> Kernel:
    """`product(a, b, c, m, k, vectors, add)`: c = a b, or c += a b where `add` is not 0.

    a has m rows of k numbers; with `transposed` it is stored as k rows of m numbers. c has m rows of `vectors`
    registers. With `pairs`, the numbers of a and b are pairs of bfloat16, and k is the number of pairs.

    Columns are written from right to left, and the rows of each column from first to last. So where the last vector
    of a row reaches into the next row, the next row is written afterwards and overwrites the excess.
    """
    panels = {vectors: _make_panel(vectors, transposed, pairs) for vectors in (3, 2, 1)}

    @kernel(name="product" + _suffix(transposed, pairs))
    def product(a: Matrix, b: Matrix, c: Matrix, m: Int, k: Int, vectors: Int, add: Int) -> None:
        left = vectors
        for wide, count in reversed(_panel_counts(vectors)):
            with loop(count) as i:
                column = (left - (i + 1) * wide) * LANES
                panels[wide](a, b.submatrix(column=column), c.submatrix(column=column), m, k, add)
            left = left - count * wide

    return product


def _panel_counts(vectors: Int) -> list[tuple[int, Int]]:
    """The number of panels of 3, 2 and 1 vectors; panels of 1 are avoided because they use few registers."""
    over = vectors - vectors // 3 * 3
    threes = (vectors - over * (2 - over) * 2) // 3  # 4 = 2 + 2, 7 = 3 + 2 + 2; -1 // 3 is 0
    left = vectors - threes * 3
    twos = left // 2
    return [(3, threes), (2, twos), (1, left - twos * 2)]


def _make_panel(vectors: int, transposed: bool, pairs: bool) -> Kernel:
    """A product with `vectors` columns of registers, in tiles of decreasing height."""
    largest = _SUMS // vectors
    heights = [largest, *(2**i for i in range(4, -1, -1) if 2**i < largest)]
    tiles = {height: _make_tile(height, vectors, transposed, pairs) for height in heights}

    @kernel(name=f"panel_{vectors}" + _suffix(transposed, pairs))
    def panel(a: Matrix, b: Matrix, c: Matrix, m: Int, k: Int, add: Int) -> None:
        done: Int | int = 0
        for height, tile in tiles.items():
            count = (m - done) // height
            with loop(count) as i:
                row = done + i * height
                tile(_from_row(a, row, transposed), b, c.submatrix(row), k, add)
            done = done + count * height

    return panel


def _make_tile(rows: int, vectors: int, transposed: bool, pairs: bool) -> Kernel:
    """One tile: each of k steps loads `vectors` registers of b and `rows` numbers of a and adds all their products."""
    multiply = multiply_pairs if pairs else multiply_add

    @kernel(name=f"tile_{rows}_{vectors}" + _suffix(transposed, pairs))
    def tile(a: Matrix, b: Matrix, c: Matrix, k: Int, add: Int) -> None:
        targets = [c.row(i) + j * LANES for i in range(rows) for j in range(vectors)]
        a_rows = [_from_row(a, i, transposed) for i in range(rows)]
        sums = [Variable(Vec.zeros()) for _ in targets]
        with when(add != 0):
            for total, target in zip(sums, targets, strict=True):
                total.value = load(target)
        with loop(k) as n:
            right = [load(b.row(n) + j * LANES) for j in range(vectors)]
            for i, row in enumerate(a_rows):
                left = broadcast(load_number(_in_column(row, n, transposed)))
                for total, y in zip(sums[i * vectors :], right, strict=False):
                    total.value = multiply(left, y, total.value)
        for total, target in zip(sums, targets, strict=True):
            store(target, total.value)

    return tile


def _suffix(transposed: bool, pairs: bool) -> str:
    """The end of the names of a member of the family."""
    return "_transposed" * transposed + "_pairs" * pairs


def _from_row(a: Matrix, row: Int | int, transposed: bool) -> Matrix:
    """The matrix a from one of its rows on, however it is stored."""
    return a.submatrix(column=row) if transposed else a.submatrix(row)


def _in_column(a_row: Matrix, n: Int, transposed: bool) -> Ptr:
    """The n-th number of the first row of a."""
    return a_row.row(n) if transposed else a_row.ptr + n
