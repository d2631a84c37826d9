"""A formula for rows at any distance from each other: what images with their channels last are made of."""

from collections.abc import Callable, Sequence
from typing import Any

from verydeep.kernels._ir import REGISTER, Kernel, N, load, repeat, store
from verydeep.kernels._vector import V


def make_strided_pass(name: str, inputs: int, outputs: int, formula: Callable[..., Sequence[V]]) -> Kernel:
    """`pass(rows, vectors, *places, *steps)`: the formula for `rows` rows of so many registers.

    Places are the addresses of the first rows of the inputs, then of the outputs; steps the distances of their rows in
    bytes. Rows are done in order: what one has written the next may read.
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


def each(count: N, body: Callable[[N], None]) -> None:
    """`for i in range(count): body(i)`."""

    def iteration(i: N, _: list[Any]) -> Sequence[Any]:
        body(i)
        return ()

    repeat(count, [], iteration)
