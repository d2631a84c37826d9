"""The sizes of a convolution, for kernels and for the Python code that calls them."""

from __future__ import annotations

from typing import NamedTuple, overload

from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._values import Int, IntPtr

Size = Int | int  # known when a kernel runs, or already to Python


class Shape(NamedTuple):
    """The sizes of a piece of work: some images, and some rows of their outputs.

    Attributes:
        channels: Feature maps of x.
        outs: Feature maps of z.
        height: Rows of x.
        width: Columns of x.
        padding: Zeros around x.
        out_height: Rows of z.
        out_width: Columns of z.
        images: Number of images.
        first: The first row of z.
        rows: Number of rows of z.
    """

    channels: Size
    outs: Size
    height: Size
    width: Size
    padding: Size
    out_height: Size
    out_width: Size
    images: Size
    first: Size
    rows: Size

    @classmethod
    def read(cls, sizes: IntPtr, images: Size, first: Size = 0, rows: Size | None = None) -> Shape:
        """The shape in a kernel; `sizes` are the sizes that all pieces share."""
        channels, outs, height, width, padding, out_height, out_width = (sizes[n] for n in range(7))
        shared = channels, outs, height, width, padding, out_height, out_width
        return cls(*shared, images, first, out_height if rows is None else rows)


@overload
def padded(numbers: int) -> int: ...
@overload
def padded(numbers: Size) -> Size: ...
def padded(numbers: Size) -> Size:
    """Rounded up to whole registers."""
    return (numbers + (LANES - 1)) // LANES * LANES
