"""The loops of max pooling over images whose channels are last.

The sizes are the channels, height and width of x, the height and width of y, then the first row of x and the number of
rows of each row of windows, and the same for columns: windows may overlap, and those at the border may be smaller.
"""

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import NamedTuple

from verydeep.kernels import _formulas as f
from verydeep.kernels.ir._control import Variable, loop, when
from verydeep.kernels.ir._elementwise import make_rowwise
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._values import Int, IntPtr, Matrix, Ptr
from verydeep.kernels.ir._vector import Vec, load, load_lanes, store, store_lanes, where

_Load = Callable[[Ptr], Vec]
_Store = Callable[[Ptr, Vec], None]
_zero_row = make_rowwise("zero_row", lambda: (Vec.zeros(),), inputs=0, outputs=1)


class _Window(NamedTuple):
    """A window of x, and the pixel of y that belongs to it."""

    rows: Int
    columns: Int
    row: Int  # numbers in a row of x
    channels: Int
    start: Int  # in x
    pixel: Int  # in y

    def each(self, side: int, visit: Callable[[Int], None]) -> None:
        """Call `visit` with the position of each pixel in x, row by row; most windows are squares of this side."""
        pixels = self.rows * self.columns
        with when(pixels == side * side):
            for down, across in product(range(side), repeat=2):
                visit(self.start + self.row * down + self.channels * across)
        with when(pixels != side * side), loop(self.rows) as i, loop(self.columns) as j:
            visit(self.start + i * self.row + j * self.channels)


@cache
def make_max_pool_forward(side: int) -> Kernel:
    """The largest number of each window; NaN if there is one. Most windows have this side."""

    @kernel(flush=True)
    def max_pool_forward(x: Ptr, y: Ptr, sizes: IntPtr, images: Int) -> None:
        def pool(window: _Window, channel: Int, read: _Load, write: _Store) -> None:
            largest = Variable(read(x + window.start + channel))

            def visit(position: Int) -> None:
                largest.value = f.larger(largest.value, read(x + position + channel))

            window.each(side, visit)
            write(y + window.pixel + channel, largest.value)

        _windows(sizes, images, pool)

    return max_pool_forward


@cache
def make_max_pool_backward(side: int, add: bool) -> Kernel:
    """The gradient of x: that of y goes to the first of the largest numbers of each window.

    Without `add`, every pixel of x belongs to exactly one window.
    """

    @kernel(flush=True)
    def max_pool_backward(dy: Ptr, x: Ptr, y: Ptr, dx: Ptr, sizes: IntPtr, images: Int) -> None:
        if add:
            _zero_row(1, images * sizes[0] * sizes[1] * sizes[2], Matrix(dx, 0))

        def pool(window: _Window, channel: Int, read: _Load, write: _Store) -> None:
            largest, gradient = read(y + window.pixel + channel), Variable(read(dy + window.pixel + channel))

            def visit(position: Int) -> None:
                value, left, there = read(x + position + channel), gradient.value, dx + position + channel
                or_nan = where(value == value, 0.0, left)  # noqa: PLR0124 - NaN is not equal to itself
                share = where(value == largest, left, or_nan)
                gradient.value = where(value == largest, 0.0, where(value == value, left, 0.0))  # noqa: PLR0124
                write(there, read(there) + share if add else share)

            window.each(side, visit)

        _windows(sizes, images, pool)

    return max_pool_backward


def _windows(sizes: IntPtr, images: Int, pool: Callable[[_Window, Int, _Load, _Store], None]) -> None:
    """Call `pool(window, channel, read, write)` for each register of channels of each window."""
    channels, height, width, out_height, out_width = (sizes[n] for n in range(5))
    vectors, row = channels // LANES, width * channels
    done = vectors * LANES
    rest = channels - done
    with loop(images) as image, loop(out_height) as i:
        down = sizes + (i * 2 + 5)
        with loop(out_width) as j:
            across = sizes + ((out_height + j) * 2 + 5)
            start = ((image * height + down[0]) * width + across[0]) * channels
            pixel = ((image * out_height + i) * out_width + j) * channels
            window = _Window(down[1], across[1], row, channels, start, pixel)
            with loop(vectors) as n:
                pool(window, n * LANES, load, store)
            with when(rest != 0):
                pool(window, done, lambda ptr: load_lanes(ptr, rest), lambda ptr, vec: store_lanes(ptr, vec, rest))
