"""Rows of pixels, whose channels may be padded to whole registers on one side."""

from collections.abc import Callable

from verydeep.kernels.ir._control import when
from verydeep.kernels.ir._elementwise import add_rows, copy_rows
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._values import Int, Matrix


def _make_pixels(name: str, apply: Callable[[Int | int, Int, Matrix, Matrix], None]) -> Kernel:
    """`name(width, channels, source, target)`: one pixel per row of each matrix; a row without gaps is one."""

    @kernel(name=name)
    def pixels(width: Int, channels: Int, source: Matrix, target: Matrix) -> None:
        with when(source.row_stride == target.row_stride):
            apply(1, width * channels, source, target)
        with when(source.row_stride != target.row_stride):
            apply(width, channels, source, target)

    return pixels


copy_pixels = _make_pixels("copy_pixels", copy_rows)
add_pixels = _make_pixels("add_pixels", lambda rows, numbers, a, b: add_rows(rows, numbers, b, a, b))
