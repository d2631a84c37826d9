"""A convolution as matrix products over pixels: every pixel of z with the patch of x that it depends on.

With channels last, a row of a patch is a contiguous part of a row of the image, and the next pixel's patch starts a few
numbers further. So the patches of a row of z are matrices whose rows overlap, one for each row of the patch, and nothing
has to be copied but the border of zeros around the image. In a 1x1 convolution all pixels are one matrix.

Scratch memory holds an image with its border (`plane`), the gradient of that (`d_plane`), the gradients of one row of
patches (dv), and z (m).
"""

from functools import cache
from typing import NamedTuple

from verydeep.kernels.conv._pixels import add_pixels, copy_pixels
from verydeep.kernels.conv._shape import Gradients, Shape, Size, padded
from verydeep.kernels.ir._control import loop, when
from verydeep.kernels.ir._elementwise import add_rows, copy_rows
from verydeep.kernels.ir._fill import zero_vectors
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._product import make_product
from verydeep.kernels.ir._sums import add_rows_to
from verydeep.kernels.ir._values import Int, IntPtr, Matrix, Ptr


class _Layout(NamedTuple):
    """Sizes, and offsets into the scratch memory."""

    plane_row: Size
    plane_rows: Size
    plane_size: Size
    terms: Size  # numbers in a row of a patch
    d_plane: Size
    dv: Size
    m: Size
    end: Size


def _lay_out(taps: int, stride: int, s: Shape) -> _Layout:
    plane_row, plane_rows = (s.width + s.padding * 2) * s.channels, s.rows * stride + (taps - 1)
    plane_size = padded(plane_row * plane_rows)
    dv = plane_size * 2
    patches = s.images * s.rows * s.out_width if taps == 1 else s.out_width
    m = dv + patches * padded(s.channels * taps)
    end = m + s.images * s.rows * s.out_width * padded(s.outs)
    return _Layout(plane_row, plane_rows, plane_size, s.channels * taps, plane_size, dv, m, end)


class Patches:
    """The scratch memory of one piece of work inside a kernel."""

    def __init__(self, taps: int, stride: int, s: Shape, start: Ptr) -> None:
        at = self.at = _lay_out(taps, stride, s)
        self.s, self.taps, self.stride = s, taps, stride
        self.rows = s.images * s.rows * s.out_width
        self.m_row, self.dv_row = padded(s.outs), padded(at.terms)
        self.filters, self.d_filters = at.terms * self.m_row, s.outs * self.dv_row
        self.plane, self.d_plane = Matrix(start, at.plane_row), Matrix(start + at.d_plane, at.plane_row)
        self.dv, self.m = Matrix(start + at.dv, self.dv_row), Matrix(start + at.m, self.m_row)

    def z_pixels(self, image: Int, row: Int) -> Ptr:
        """A row of an image of z."""
        return self.m.row((image * self.s.rows + row) * self.s.out_width)

    def patches(self, plane: Matrix, row: Int, tap: int) -> Matrix:
        """One row of each patch of a row of z."""
        return Matrix(plane.row(row * self.stride + tap), self.s.channels * self.stride)


class PatchesKernels:
    """How the pixels of z are computed from patches of x."""

    def __init__(self, taps: int, stride: int) -> None:
        self.taps, self.stride = taps, stride
        self.is_pixelwise = taps == stride == 1

    def scratch_size(self, s: Shape) -> int:
        """The size of the scratch memory of a piece of work, in numbers."""
        end = _lay_out(self.taps, self.stride, s).end
        assert isinstance(end, int)
        return end

    def scratch(self, s: Shape, start: Ptr) -> Patches:
        """The scratch memory inside a kernel."""
        return Patches(self.taps, self.stride, s, start)

    def multiply(self, p: Patches, x: Ptr, u: Ptr, scratch: Ptr, sizes: IntPtr) -> None:
        """z, with the bias."""
        s, product, vectors = p.s, make_product(), p.m_row // LANES
        copy_rows(p.rows, p.m_row, Matrix(u + p.filters * self.taps, 0), p.m)
        if self.is_pixelwise:
            pixels = Matrix(x + s.first * s.width * s.channels, s.channels)
            product(pixels, Matrix(u, p.m_row), p.m, p.rows, s.channels, vectors, 1)
            return
        with loop(s.images) as i:
            _make_border(self.taps, self.stride)(x, scratch, sizes, s.images, s.first, s.rows, i)
            with loop(s.rows) as j:
                z_row = Matrix(p.z_pixels(i, j), p.m_row)
                for tap in range(self.taps):
                    weights = Matrix(u + p.filters * tap, p.m_row)
                    product(p.patches(p.plane, j, tap), weights, z_row, s.out_width, p.at.terms, vectors, 1)

    def collect(self, p: Patches, image: Int) -> None:
        """z is the product itself."""

    def clear_z(self, p: Patches) -> None:
        """Zeros where the gradients of z will be written, because of the padding of their rows."""
        with when(p.s.outs != p.m_row):
            zero_vectors(p.m.ptr, p.rows * p.m_row // LANES)

    def d_collect(self, p: Patches, image: Int) -> None:
        """The derivative of `collect`."""

    def d_multiply(self, p: Patches, d: Gradients, scratch: Ptr, sizes: IntPtr, add: bool) -> None:
        """The derivative of `multiply`: du and dx from dz."""
        s, transposed, vectors = p.s, make_product(transposed=True), p.m_row // LANES
        with when(d.first != 0):
            zero_vectors(d.du, (p.filters * self.taps + p.m_row) // LANES)
        add_rows_to(p.m, p.rows, vectors, d.du + p.filters * self.taps)
        if self.is_pixelwise:
            transposed(Matrix(d.x, s.channels), p.m, Matrix(d.du, p.m_row), s.channels, p.rows, vectors, 1)
            with when(d.with_dx != 0):
                make_product()(p.m, Matrix(d.u, p.dv_row), p.dv, p.rows, s.outs, p.dv_row // LANES, 0)
                (add_pixels if add else copy_pixels)(p.rows, s.channels, p.dv, Matrix(d.dx, s.channels))
            return
        with loop(s.images) as i:
            _make_border(self.taps, self.stride)(d.x, scratch, sizes, s.images, s.first, s.rows, i)
            with loop(s.rows) as j:
                dz_row = Matrix(p.z_pixels(i, j), p.m_row)
                for tap in range(self.taps):
                    d_weights = Matrix(d.du + p.filters * tap, p.m_row)
                    transposed(p.patches(p.plane, j, tap), dz_row, d_weights, p.at.terms, s.out_width, vectors, 1)
        with when(d.with_dx != 0):
            _make_d_patches(self.taps, self.stride, add)(d.u, d.dx, scratch, sizes, s.images)


@cache
def _make_border(taps: int, stride: int) -> Kernel:
    """An image with a border of zeros."""

    @kernel
    def border(x: Ptr, scratch: Ptr, sizes: IntPtr, images: Int, first: Int, rows: Int, image: Int) -> None:
        s = Shape.read(sizes, images, first, rows)
        p = Patches(taps, stride, s, scratch)
        zero_vectors(p.plane.ptr, p.at.plane_size // LANES)
        with loop(p.at.plane_rows) as j:
            row = first * stride + j - s.padding
            with when(row >= 0), when(row < s.height):
                source = Matrix(x + (image * s.height + row) * s.width * s.channels, s.channels)
                target = Matrix(p.plane.row(j) + s.padding * s.channels, s.channels)
                copy_pixels(s.width, s.channels, source, target)

    return border


@cache
def _make_d_patches(taps: int, stride: int, add: bool) -> Kernel:
    """dx from dz."""
    product = make_product()

    @kernel
    def d_patches(u: Ptr, dx: Ptr, scratch: Ptr, sizes: IntPtr, images: Int) -> None:
        s = Shape.read(sizes, images)
        p = Patches(taps, stride, s, scratch)
        with loop(images) as i:
            zero_vectors(p.d_plane.ptr, p.at.plane_size // LANES)
            with loop(s.out_height) as j:
                dz_row = Matrix(p.z_pixels(i, j), p.m_row)
                for tap in range(taps):
                    weights = Matrix(u + p.d_filters * tap, p.dv_row)
                    product(dz_row, weights, p.dv, s.out_width, s.outs, p.dv_row // LANES, 0)
                    there = p.patches(p.d_plane, j, tap)
                    add_rows(s.out_width, p.at.terms, there, p.dv, there)
            with loop(s.height) as j:
                source = Matrix(p.d_plane.row(j + s.padding) + s.padding * s.channels, s.channels)
                target = Matrix(dx + (i * s.height + j) * s.width * s.channels, s.channels)
                (add_pixels if add else copy_pixels)(s.width, s.channels, source, target)

    return d_patches
