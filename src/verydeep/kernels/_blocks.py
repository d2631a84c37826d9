"""The three building blocks of the kernels.

product    a matrix product, tile by tile: a tile's sums stay in registers
turn       a matrix with rows and columns exchanged
make_pass  a formula for every number of matrices, each loaded and stored once
"""

from collections.abc import Callable, Sequence
from functools import cache

from llvmlite import ir

from verydeep.kernels._ir import (
    LANES,
    NUMBER,
    REGISTER,
    REGISTERS,
    VECTOR,
    ZERO,
    Kernel,
    N,
    Value,
    broadcast,
    load,
    load_number,
    repeat,
    shuffle,
    store,
    store_number,
    vector_function,
)
from verydeep.kernels._vector import V

_SUMS = 12 if REGISTERS == 16 else 24  # registers that hold a tile's sums; the others hold what is multiplied


def make_product(by_row: bool) -> Kernel:
    """`product(a, step, b, b_step, c, c_step, m, k, vectors, add)`: c = a b, or c += a b with `add`.

    c has m rows of so many vectors, its rows are `c_step` bytes apart, as those of b `b_step`. Numbers of a row of a
    lie side by side and its rows `step` bytes apart when `by_row`; otherwise the other way round.

    Columns are written from right to left, and in each the rows from first to last: a row whose last vector reaches
    into the next one is mended by that.
    """
    panels = {vectors: _panel(vectors, by_row) for vectors in (3, 2, 1)}

    def emit(a: N, step: N, b: N, b_step: N, c: N, c_step: N, m: N, k: N, vectors: N, add: N) -> None:
        left = vectors
        for wide, count in reversed(_columns(vectors)):

            def panel(i: N, _: list[Value], wide: int = wide, left: N = left) -> Sequence[Value]:
                at = (left - (i + 1) * wide) * REGISTER
                panels[wide](a, step, b + at, b_step, c + at, c_step, m, k, add)
                return ()

            repeat(count, [], panel)
            left = left - count * wide

    return Kernel(f"product_{_name(by_row)}", 10, emit)


def _columns(vectors: N) -> list[tuple[int, N]]:
    """How many panels of 3, 2 and 1 vectors; a 1 is avoided, because 3 and 2 make better use of the registers."""
    over = vectors - vectors // 3 * 3
    threes = (vectors - over * (over * -1 + 2) * 2) // 3  # 4 = 2 + 2, 7 = 3 + 2 + 2
    left = vectors - threes * 3
    twos = left // 2
    return [(3, threes), (2, twos), (1, left - twos * 2)]


def _panel(vectors: int, by_row: bool) -> Kernel:
    """A product with so few columns, in tiles of ever fewer rows."""
    largest = _SUMS // vectors
    sizes = [largest, *(2**i for i in range(4, -1, -1) if 2**i < largest)]
    tiles = {size: _tile(size, vectors, by_row) for size in sizes}

    def emit(a: N, step: N, b: N, b_step: N, c: N, c_step: N, m: N, k: N, add: N) -> None:
        done = m - m
        for size, tile in tiles.items():
            count = (m - done) // size

            def rows(i: N, _: list[Value], size: int = size, tile: Kernel = tile, done: N = done) -> Sequence[Value]:
                row = done + i * size
                tile(a + (row * step if by_row else row * NUMBER), step, b, b_step, c + row * c_step, c_step, k, add)
                return ()

            repeat(count, [], rows)
            done = done + count * size

    return Kernel(f"panel_{vectors}_{_name(by_row)}", 9, emit)


def _tile(rows: int, vectors: int, by_row: bool) -> Kernel:
    """Each of k steps loads `vectors` registers of b and `rows` numbers of a, and adds all their products."""

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
    """What is there if `add`, else zeros."""
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


@cache
def make_turn() -> Kernel:
    """`turn(a, a_step, b, b_step, rows, columns)`: b = a', by squares of registers; steps are bytes.

    Rows and columns, of a, are counted in whole registers.
    """
    square = Kernel("square", 4, _square)

    def emit(a: N, a_step: N, b: N, b_step: N, rows: N, columns: N) -> None:
        def row(i: N, _: list[Value]) -> Sequence[Value]:
            def column(j: N, _: list[Value]) -> Sequence[Value]:
                square(a + i * a_step * LANES + j * REGISTER, a_step, b + j * b_step * LANES + i * REGISTER, b_step)
                return ()

            repeat(columns, [], column)
            return ()

        repeat(rows, [], row)

    return Kernel("turn", 6, emit)


def make_turn_all() -> Kernel:
    """`turn_all(a, a_step, b, b_step, rows, columns)`: as `turn`, but rows and columns are any numbers."""
    turn = make_turn()

    def emit(a: N, a_step: N, b: N, b_step: N, rows: N, columns: N) -> None:
        down, across = rows // LANES, columns // LANES
        turn(a, a_step, b, b_step, down, across)
        done, right = down * LANES, columns - across * LANES
        _turn_numbers(a + across * REGISTER, a_step, b + across * b_step * LANES, b_step, done, right)
        _turn_numbers(a + done * a_step, a_step, b + done * NUMBER, b_step, rows - done, columns)

    return Kernel("turn_all", 6, emit)


def _turn_numbers(a: N, a_step: N, b: N, b_step: N, rows: N, columns: N) -> None:
    """One number after the other."""

    def row(i: N, _: list[Value]) -> Sequence[Value]:
        def number(j: N, _: list[Value]) -> Sequence[Value]:
            store_number(load_number(a + i * a_step + j * NUMBER), b + j * b_step + i * NUMBER)
            return ()

        repeat(columns, [], number)
        return ()

    repeat(rows, [], row)


def _square(a: N, a_step: N, b: N, b_step: N) -> None:
    builder = a.builder
    rows = [load(a + a_step * i) for i in range(LANES)]
    distance = LANES // 2
    while distance:  # exchange the off-diagonal quarters of ever smaller squares
        for i in (i for i in range(LANES) if not i & distance):
            upper, lower = rows[i], rows[i + distance]
            first = [n if not n & distance else LANES + n - distance for n in range(LANES)]
            second = [n + distance if not n & distance else LANES + n for n in range(LANES)]
            rows[i] = shuffle(builder, upper, lower, first)
            rows[i + distance] = shuffle(builder, upper, lower, second)
        distance //= 2
    for i, row in enumerate(rows):
        store(row, b + b_step * i)


def make_clear() -> Kernel:
    """`clear(a, step, rows, numbers)`: so many zeros at the begin of each row; a step is bytes."""

    def emit(a: N, step: N, rows: N, numbers: N) -> None:
        zero = ir.Constant(ir.FloatType(), 0.0)

        def row(i: N, _: list[Value]) -> Sequence[Value]:
            def number(j: N, _: list[Value]) -> Sequence[Value]:
                store_number(zero, a + i * step + j * NUMBER)
                return ()

            repeat(numbers, [], number)
            return ()

        repeat(rows, [], row)

    return Kernel("clear", 4, emit)


def make_pass(name: str, inputs: int, numbers: int, outputs: int, formula: Callable[..., Sequence[V]]) -> Kernel:
    """`pass(rows, vectors, *inputs, *numbers, *outputs, *sums)`: the formula for every number of matrices.

    Inputs and outputs are addresses of matrices, which may be the same; numbers are addresses of one number a row. What
    the formula returns beyond the outputs is added up over each row, and added to the numbers at `sums`.
    """
    sums = len(formula(*[_probe()] * (inputs + numbers))) - outputs

    def emit(rows: N, vectors: N, *addresses: N) -> None:
        builder = rows.builder
        matrices, constants = addresses[:inputs], addresses[inputs : inputs + numbers]
        targets = addresses[inputs + numbers : inputs + numbers + outputs]

        def row(i: N, _: list[Value]) -> Sequence[Value]:
            start = i * vectors * REGISTER
            fixed = [V(builder, broadcast(builder, load_number(number + i * NUMBER))) for number in constants]

            def vector(n: N, totals: list[Value]) -> Sequence[Value]:
                at = start + n * REGISTER
                results = formula(*(V(builder, load(matrix + at)) for matrix in matrices), *fixed)
                for target, result in zip(targets, results[:outputs], strict=True):
                    store(result.value, target + at)
                return [builder.fadd(t, r.value) for t, r in zip(totals, results[outputs:], strict=True)]

            totals = repeat(vectors, [ZERO] * sums, vector)
            for total, address in zip(totals, addresses[len(addresses) - sums :], strict=True):
                _add_lanes(total, address + i * NUMBER)
            return ()

        repeat(rows, [], row)

    return Kernel(name, 2 + inputs + numbers + outputs + sums, emit)


def _add_lanes(vector: Value, address: N) -> None:
    """Add all lanes to the number at an address, always in the same order."""
    builder, lanes = address.builder, LANES
    while lanes > 1:
        lanes //= 2
        vector = builder.fadd(vector, shuffle(builder, vector, vector, [(n + lanes) % LANES for n in range(LANES)]))
    total = builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))
    store_number(builder.fadd(load_number(address), total), address)


def _probe() -> V:
    """Stands for any vector when only the number of a formula's results is asked for."""
    function = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), []), "probe")
    return V(ir.IRBuilder(function.append_basic_block()), ZERO)
