"""The sizes of a convolution, for kernels and for the Python code that calls them."""

from __future__ import annotations

from typing import NamedTuple

from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._values import Int, IntPtr, Ptr

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
        shared = [sizes[n] for n in range(SIZES)]
        return cls(*shared, images, first, shared[5] if rows is None else rows)


SIZES = Shape._fields.index("images")  # numbers that all pieces share


class Gradients(NamedTuple):
    """What the backward pass through the products of a piece of work reads and writes.

    Attributes:
        x: The images.
        u: The filters, `(position, out, term)`.
        dx: The gradient of x, written where `with_dx` is not 0.
        du: The gradients of filters and bias; they are accumulated unless `first` is not 0.
        first: Whether this is the first piece that is added to du.
        with_dx: Whether the gradient of x is needed.
    """

    x: Ptr
    u: Ptr
    dx: Ptr
    du: Ptr
    first: Int
    with_dx: Int


def padded(numbers: Size) -> Size:
    """Rounded up to whole registers."""
    return (numbers + (LANES - 1)) // LANES * LANES
