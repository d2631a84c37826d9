"""Matrix products, tile by tile: a tile's sums stay in registers."""

from collections.abc import Sequence

from verydeep.kernels.ir._ir import (
    NUMBER,
    REGISTER,
    REGISTERS,
    VECTOR,
    ZERO,
    Kernel,
    N,
    Value,
    broadcast,
    each,
    load,
    load_number,
    repeat,
    store,
    vector_function,
)

_SUMS = 12 if REGISTERS == 16 else 24  # registers that hold a tile's sums; the others hold what is multiplied


def make_product(by_row: bool) -> Kernel:
    """`product(a, step, b, b_step, c, c_step, m, k, vectors, add)`: c = a b, or c += a b with `add`.

    c has m rows of `vectors` registers, which are `c_step` bytes apart; the rows of b are `b_step` bytes apart. With
    `by_row` the numbers in a row of a are adjacent and its rows are `step` bytes apart; otherwise the numbers in a
    column are adjacent and the columns are `step` bytes apart.

    Columns are written from right to left, and the rows of each column from first to last. So where the last vector
    of a row reaches into the next row, the next row is written afterwards and overwrites the excess.
    """
    panels = {vectors: _panel(vectors, by_row) for vectors in (3, 2, 1)}

    def emit(a: N, step: N, b: N, b_step: N, c: N, c_step: N, m: N, k: N, vectors: N, add: N) -> None:
        left = vectors
        for wide, count in reversed(_columns(vectors)):

            def panel(i: N, wide: int = wide, left: N = left) -> None:
                at = (left - (i + 1) * wide) * REGISTER
                panels[wide](a, step, b + at, b_step, c + at, c_step, m, k, add)

            each(count, panel)
            left = left - count * wide

    return Kernel(f"product_{_name(by_row)}", 10, emit)


def _columns(vectors: N) -> list[tuple[int, N]]:
    """The number of panels of 3, 2 and 1 vectors; panels of 1 are avoided because they use few registers."""
    over = vectors - vectors // 3 * 3
    threes = (vectors - over * (over * -1 + 2) * 2) // 3  # 4 = 2 + 2, 7 = 3 + 2 + 2
    left = vectors - threes * 3
    twos = left // 2
    return [(3, threes), (2, twos), (1, left - twos * 2)]


def _panel(vectors: int, by_row: bool) -> Kernel:
    """A product with `vectors` columns of registers, in tiles of decreasing height."""
    largest = _SUMS // vectors
    sizes = [largest, *(2**i for i in range(4, -1, -1) if 2**i < largest)]
    tiles = {size: _tile(size, vectors, by_row) for size in sizes}

    def emit(a: N, step: N, b: N, b_step: N, c: N, c_step: N, m: N, k: N, add: N) -> None:
        done = m - m
        for size, tile in tiles.items():
            count = (m - done) // size

            def rows(i: N, size: int = size, tile: Kernel = tile, done: N = done) -> None:
                row = done + i * size
                tile(a + (row * step if by_row else row * NUMBER), step, b, b_step, c + row * c_step, c_step, k, add)

            each(count, rows)
            done = done + count * size

    return Kernel(f"panel_{vectors}_{_name(by_row)}", 9, emit)


def _tile(rows: int, vectors: int, by_row: bool) -> Kernel:
    """One tile: each of k steps loads `vectors` registers of b and `rows` numbers of a and adds all their products."""

    def emit(a: N, step: N, b: N, b_step: N, c: N, c_step: N, k: N, add: N) -> None:
        builder = a.builder
        places = [c + c_step * i + j * REGISTER for i in range(rows) for j in range(vectors)]
        a_rows = [a + (step * i if by_row else i * NUMBER) for i in range(rows)]
        fma = vector_function(builder, "llvm.fmuladd", 3)

        def products(n: N, sums: list[Value]) -> Sequence[Value]:
            right = [load(b + n * b_step + j * REGISTER) for j in range(vectors)]
            at = n * NUMBER if by_row else n * step
            left = [broadcast(builder, load_number(row + at)) for row in a_rows]
            pairs = [(x, y) for x in left for y in right]
            return [builder.call(fma, [x, y, total]) for (x, y), total in zip(pairs, sums, strict=True)]

        for total, place in zip(repeat(k, _start(places, add), products), places, strict=True):
            store(total, place)

    return Kernel(f"tile_{rows}_{vectors}_{_name(by_row)}", 8, emit)


def _start(places: Sequence[N], add: N) -> list[Value]:
    """The initial sums: the numbers in memory with `add`, otherwise zeros."""
    builder = add.builder
    with builder.if_else(add == 0) as (then, otherwise):
        with then:
            empty = builder.block
        with otherwise:
            old, full = [load(place) for place in places], builder.block
    start = [builder.phi(VECTOR) for _ in places]
    for phi, value in zip(start, old, strict=True):
        phi.add_incoming(value, full)
        phi.add_incoming(ZERO, empty)
    return start


def _name(by_row: bool) -> str:
    return "rows" if by_row else "columns"
