"""Formulas applied to every number of matrices, each loaded and stored once."""

from collections.abc import Callable, Sequence

from verydeep.kernels.ir._control import Variable, loop, when
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._values import Int, Matrix, Ptr
from verydeep.kernels.ir._vector import (
    Vec,
    broadcast,
    load,
    load_lanes,
    load_number,
    store,
    store_lanes,
    store_number,
)

Formula = Callable[..., Sequence[Vec]]

_TOGETHER = 2  # registers that a formula works on at a time


def make_elementwise(
    name: str, formula: Formula, inputs: int, numbers: int = 0, outputs: int = 0, sums: int = 0
) -> Kernel:
    """`name(rows, vectors, *inputs, *numbers, *outputs, *sums)`: a formula for matrices whose rows have no gaps.

    The formula takes a register of each of the inputs, and each of `numbers`, which hold one number per row. It returns
    a register of each of the outputs, which may be inputs, too, and registers whose sum over a row is added to the
    number of that row in `sums`.
    """

    @kernel(name=name, variadic=inputs + numbers + outputs + sums)
    def elementwise(rows: Int, vectors: Int, *arrays: Ptr) -> None:
        with loop(rows) as i:
            start = i * vectors * LANES
            constants = [broadcast(load_number(array + i)) for array in arrays[inputs : inputs + numbers]]
            targets = arrays[inputs + numbers : len(arrays) - sums]
            totals = [Variable(Vec.zeros()) for _ in range(sums)]

            def apply(first: Int, together: int) -> None:
                offsets = [start + (first + n) * LANES for n in range(together)]
                read = [Vec.join([load(array + offset) for offset in offsets]) for array in arrays[:inputs]]
                results = formula(*read, *constants)
                for target, result in zip(targets, results[:outputs], strict=True):
                    for register, offset in zip(result.split(), offsets, strict=True):
                        store(target + offset, register)
                for total, result in zip(totals, results[outputs:], strict=True):
                    total.value = total.value.accumulate(result)

            groups = vectors // _TOGETHER
            with loop(groups) as n:
                apply(n * _TOGETHER, _TOGETHER)
            done = groups * _TOGETHER
            with loop(vectors - done) as n:
                apply(done + n, 1)
            for total, array in zip(totals, arrays[len(arrays) - sums :], strict=True):
                store_number(array + i, load_number(array + i) + total.value.sum_lanes())

    return elementwise


def make_rowwise(name: str, formula: Formula, inputs: int, outputs: int) -> Kernel:
    """`name(rows, numbers, *inputs, *outputs)`: a formula for rows of any length, at any distance, in order.

    Nothing outside of the rows is read or written. Images with their channels last are made of such rows.
    """

    @kernel(name=name, variadic=inputs + outputs)
    def rowwise(rows: Int, numbers: Int, *matrices: Matrix) -> None:
        vectors = numbers // LANES
        done = vectors * LANES
        rest = numbers - done
        with loop(rows) as i:
            starts = [matrix.row(i) for matrix in matrices]
            with loop(vectors) as n:
                results = formula(*(load(start + n * LANES) for start in starts[:inputs]))
                for target, result in zip(starts[inputs:], results, strict=True):
                    store(target + n * LANES, result)
            with when(rest != 0):
                results = formula(*(load_lanes(start + done, rest) for start in starts[:inputs]))
                for target, result in zip(starts[inputs:], results, strict=True):
                    store_lanes(target + done, result, rest)

    return rowwise


add = make_elementwise("add", lambda a, b: (a + b,), inputs=2, outputs=1)
copy = make_elementwise("copy", lambda a: (a,), inputs=1, outputs=1)
add_rows = make_rowwise("add_rows", lambda a, b: (a + b,), inputs=2, outputs=1)
copy_rows = make_rowwise("copy_rows", lambda a: (a,), inputs=1, outputs=1)
