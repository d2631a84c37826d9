"""The loops that prepare filters for the products of a layer, and their derivative.

A part is the filters of one affine map, or of one piece of maxout: rows of `(channel, row, column)` at equal distances.
Kernels take the filters of all parts together (`_conv_loops` has their order), so each part fills some columns of the
filters for the forward pass, and some rows of those for the backward pass. What lies between the last part and the end
of a row is never written, and the products that depend on it are never read.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from verydeep.kernels.conv._shape import padded
from verydeep.kernels.conv._winograd import POSITIONS, filter_matrix
from verydeep.kernels.ir._control import loop, when
from verydeep.kernels.ir._elementwise import copy_rows, make_rowwise
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._transpose import transpose
from verydeep.kernels.ir._values import Int, Matrix, Ptr
from verydeep.kernels.ir._vector import Vec

_TOGETHER = LANES  # channels whose filters are transposed at a time


class FilterKernels(NamedTuple):
    """The kernels for one receptive field.

    Attributes:
        forward: `(weight, bias, u, scratch, outs, channels, row, column)`: one part of `(position, term, out)` and of
            the bias behind it; u has rows of `row` numbers, and the part starts at a column.
        backward: `(weight, u, scratch, outs, channels, row, first, all_outs)`: one part of `(position, out, term)`,
            which starts at output `first` of `all_outs`.
        gradients: `(du, d_weight, d_bias, scratch, outs, channels, row, column)`: the derivative of `forward`.
    """

    forward: Kernel
    backward: Kernel
    gradients: Kernel


def scratch_size(taps: int, outs: int, channels: int) -> int:
    """The size of the kernels' scratch memory, in numbers."""
    return taps**2 * max(_TOGETHER * padded(outs), padded(channels))


@cache
def make_filter_kernels(taps: int, winograd: bool) -> FilterKernels:
    """The kernels for receptive fields of `taps` by `taps`; with `winograd`, filters are transformed for tiles."""
    size = taps**2
    positions = POSITIONS if winograd else size  # that a row of u has, for each channel
    to_tiles = make_rowwise("filter_tiles", partial(_along_both, filter_matrix(taps)), size, POSITIONS)
    from_tiles = make_rowwise("d_filter_tiles", partial(_along_both, filter_matrix(taps).T), POSITIONS, size)

    @kernel(flush=True)
    def filters_forward(
        weight: Matrix, bias: Matrix, u: Ptr, scratch: Ptr, outs: Int, channels: Int, row: Int, column: Int
    ) -> None:
        by_tap = _taps(scratch, outs, size)

        def write(first: Int, count: Int | int) -> None:
            u_rows = _positions(u + first * row + column, channels, row, positions)
            transpose(weight.submatrix(column=first * size), Matrix(scratch, padded(outs)), outs, count * size)
            if winograd:
                to_tiles(count, outs, *by_tap, *u_rows)
            else:
                for source, target in zip(by_tap, u_rows, strict=True):
                    copy_rows(count, outs, source, target)

        _in_chunks(channels, write)
        transpose(bias, Matrix(u + channels * row * positions + column, row), outs, 1)

    @kernel(flush=True)
    def filters_backward(
        weight: Matrix, u: Ptr, scratch: Ptr, outs: Int, channels: Int, row: Int, first: Int, all_outs: Int
    ) -> None:
        by_tap = [Matrix(scratch + padded(channels) * k, 0) for k in range(size)]
        with loop(outs) as i:
            transpose(Matrix(weight.row(i), size), Matrix(scratch, padded(channels)), channels, size)
            rows = [Matrix(u + (all_outs * n + first + i) * row, 0) for n in range(POSITIONS if winograd else taps)]
            if winograd:
                to_tiles(1, channels, *by_tap, *rows)
            else:
                for k, source in enumerate(by_tap):
                    copy_rows(1, channels, source, rows[k // taps].submatrix(column=channels * (k % taps)))

    @kernel(flush=True)
    def filters_gradients(
        du: Ptr, d_weight: Matrix, d_bias: Matrix, scratch: Ptr, outs: Int, channels: Int, row: Int, column: Int
    ) -> None:
        by_tap = _taps(scratch, outs, size)

        def write(first: Int, count: Int | int) -> None:
            du_rows = _positions(du + first * row + column, channels, row, positions)
            if winograd:
                from_tiles(count, outs, *du_rows, *by_tap)
            else:
                for source, target in zip(du_rows, by_tap, strict=True):
                    copy_rows(count, outs, source, target)
            transpose(Matrix(scratch, padded(outs)), d_weight.submatrix(column=first * size), count * size, outs)

        _in_chunks(channels, write)
        transpose(Matrix(du + channels * row * positions + column, row), d_bias, 1, outs)

    return FilterKernels(filters_forward, filters_backward, filters_gradients)


def _in_chunks(channels: Int, write: Callable[[Int, Int | int], None]) -> None:
    """Call `write(first, count)` for a few channels at a time, whose filters fit into the fastest cache."""
    full = channels // _TOGETHER
    with loop(full) as i:
        write(i * _TOGETHER, _TOGETHER)
    done = full * _TOGETHER
    with when(channels != done):
        write(done, channels - done)


def _taps(scratch: Ptr, outs: Int, size: int) -> list[Matrix]:
    """Transposed filters, `(channel, tap, out)`: for each tap the rows of all channels."""
    return [Matrix(scratch + padded(outs) * k, padded(outs) * size) for k in range(size)]


def _positions(u: Ptr, channels: Int, row: Int, positions: int) -> list[Matrix]:
    """`(position, channel, out)`: for each position the rows of the channels from an address on."""
    return [Matrix(u + channels * row * n, row) for n in range(positions)]


def _along_both(matrix: NDArray[np.float64], *square: Vec) -> Sequence[Vec]:
    """The product of a matrix with a square of values, and of the result with the transposed matrix."""
    side = matrix.shape[1]
    columns = [[_combine(row, square[k::side]) for row in matrix] for k in range(side)]
    return [_combine(row, values) for values in zip(*columns, strict=True) for row in matrix]


def _combine(factors: NDArray[np.float64], values: Sequence[Vec]) -> Vec:
    """The sum of products, without those with 0."""
    terms = [
        value if factor == 1 else value * float(factor) for factor, value in zip(factors, values, strict=True) if factor
    ]
    return sum(terms[1:], terms[0])
