"""Formulas applied to every number of matrices, each loaded and stored once, and filling memory with zeros."""

from collections.abc import Callable, Sequence
from functools import reduce

from llvmlite import ir

from verydeep.kernels.ir._ir import (
    LANES,
    NUMBER,
    REGISTER,
    ZERO,
    Kernel,
    N,
    Value,
    broadcast,
    each,
    load,
    load_number,
    repeat,
    shuffle,
    store,
    store_number,
)
from verydeep.kernels.ir._vector import V

_TOGETHER = 2  # registers that a formula works on at a time


def make_pass(name: str, inputs: int, numbers: int, outputs: int, formula: Callable[..., Sequence[V]]) -> Kernel:
    """`pass(rows, vectors, *inputs, *numbers, *outputs, *sums)`: the formula for every number of matrices.

    Inputs and outputs are addresses of matrices and may coincide; `numbers` are addresses of one number per row. What
    the formula returns beyond the outputs is summed over each row and added to the numbers at `sums`.
    """
    sums = len(formula(*[_probe()] * (inputs + numbers))) - outputs

    def emit(rows: N, vectors: N, *addresses: N) -> None:
        builder = rows.builder
        matrices, constants = addresses[:inputs], addresses[inputs : inputs + numbers]
        targets = addresses[inputs + numbers : inputs + numbers + outputs]

        def row(i: N) -> None:
            start = i * vectors * REGISTER
            fixed = [V(builder, broadcast(builder, load_number(number + i * NUMBER))) for number in constants]

            def some(first: N, count: N, together: int, totals: list[Value]) -> list[Value]:
                def turn(n: N, totals: list[Value]) -> Sequence[Value]:
                    places = [start + (first + n * together + i) * REGISTER for i in range(together)]
                    read = [V(builder, *(load(matrix + at) for at in places)) for matrix in matrices]
                    results = formula(*read, *fixed)
                    for target, result in zip(targets, results[:outputs], strict=True):
                        for register, at in zip(result.registers, places, strict=True):
                            store(register, target + at)
                    added = zip(totals, results[outputs:], strict=True)
                    return [reduce(builder.fadd, result.registers, total) for total, result in added]

                return repeat(count, totals, turn)

            turns = vectors // _TOGETHER
            done = turns * _TOGETHER
            totals = some(turns - turns, turns, _TOGETHER, [ZERO] * sums)
            totals = some(done, vectors - done, 1, totals)
            for total, address in zip(totals, addresses[len(addresses) - sums :], strict=True):
                _add_lanes(total, address + i * NUMBER)

        each(rows, row)

    return Kernel(name, 2 + inputs + numbers + outputs + sums, emit)


def _add_lanes(vector: Value, address: N) -> None:
    """Add all lanes to the number at an address, always in the same order so that the bits are the same."""
    builder, lanes = address.builder, LANES
    while lanes > 1:
        lanes //= 2
        vector = builder.fadd(vector, shuffle(builder, vector, vector, [(n + lanes) % LANES for n in range(LANES)]))
    total = builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))
    store_number(builder.fadd(load_number(address), total), address)


def _probe() -> V:
    """A placeholder vector, used to count the results of a formula."""
    function = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), []), "probe")
    return V(ir.IRBuilder(function.append_basic_block()), ZERO)


def make_strided_pass(name: str, inputs: int, outputs: int, formula: Callable[..., Sequence[V]]) -> Kernel:
    """`pass(rows, vectors, *places, *steps)`: the formula for `rows` rows of `vectors` registers, at any row distance.

    `places` are the addresses of the first rows of the inputs, then of the outputs; `steps` are the distances of their
    rows in bytes. Rows are processed in order, so a row may read what the row before has written. Images with their
    channels last are made of such rows.
    """
    count = inputs + outputs

    def emit(rows: N, vectors: N, *rest: N) -> None:
        places, steps = rest[:count], rest[count:]

        def row(i: N) -> None:
            starts = [place + i * step for place, step in zip(places, steps, strict=True)]

            def vector(n: N) -> None:
                values = [V(n.builder, load(start + n * REGISTER)) for start in starts[:inputs]]
                for target, result in zip(starts[inputs:], formula(*values), strict=True):
                    (register,) = result.registers
                    store(register, target + n * REGISTER)

            each(vectors, vector)

        each(rows, row)

    return Kernel(name, 2 + 2 * count, emit)


def make_clear() -> Kernel:
    """`clear(a, step, rows, numbers)`: writes `numbers` zeros at the beginning of each row; `step` is in bytes."""

    def emit(a: N, step: N, rows: N, numbers: N) -> None:
        zero = ir.Constant(ir.FloatType(), 0.0)

        def row(i: N) -> None:
            each(numbers, lambda j: store_number(zero, a + i * step + j * NUMBER))

        each(rows, row)

    return Kernel("clear", 4, emit)


def make_zero() -> Kernel:
    """`zero(address, vectors)`: fills `vectors` registers from an address on with zeros."""

    def emit(address: N, vectors: N) -> None:
        each(vectors, lambda n: store(ZERO, address + n * REGISTER))

    return Kernel("zero", 2, emit)
