"""A convolution as matrix products over pixels: every pixel of z with the patch of x that it depends on.

With channels last, a row of a patch is a contiguous part of a row of the image, and the next pixel's patch starts a few
numbers further. So the patches of a row of z are matrices whose rows overlap, one for each row of the patch. Images are
copied only because of the border of zeros around them. In a 1x1 convolution all pixels are one matrix.

Scratch memory holds an image with its border (`plane`), the gradient of that (`d_plane`), the gradients of one row of
patches (dv), and z (m).
"""

from functools import cache
from typing import NamedTuple

from verydeep.kernels.conv._lowering import Gradients, Lowered, Lowering
from verydeep.kernels.conv._pixels import add_pixels, copy_pixels
from verydeep.kernels.conv._shape import Shape, Size, padded
from verydeep.kernels.ir._control import loop, when
from verydeep.kernels.ir._elementwise import add_rows, copy_rows
from verydeep.kernels.ir._fill import zero_vectors
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._product import make_product
from verydeep.kernels.ir._sums import add_rows_to
from verydeep.kernels.ir._values import Condition, Int, IntPtr, Matrix, Ptr


class _PatchesLayout(NamedTuple):
    """Sizes, and offsets into the scratch memory."""

    plane_row: Size
    plane_rows: Size
    plane_size: Size
    terms: Size  # numbers in a row of a patch
    d_plane: Size
    dv: Size
    m: Size
    end: Size


def _lay_out(taps: int, stride: int, s: Shape) -> _PatchesLayout:
    plane_row, plane_rows = (s.width + s.padding * 2) * s.channels, s.rows * stride + (taps - 1)
    plane_size = padded(plane_row * plane_rows)
    dv = plane_size * 2
    patches = s.images * s.rows * s.out_width if taps == 1 else s.out_width
    m = dv + patches * padded(s.channels * taps)
    end = m + s.images * s.rows * s.out_width * padded(s.outs)
    return _PatchesLayout(plane_row, plane_rows, plane_size, s.channels * taps, plane_size, dv, m, end)


class Direct(Lowering):
    """Products of patches, for receptive fields of `taps` by `taps`."""

    def __init__(self, taps: int, stride: int) -> None:
        self.taps, self.stride = taps, stride

    def scratch_size(self, s: Shape) -> int:
        end = _lay_out(self.taps, self.stride, s).end
        assert isinstance(end, int)
        return end

    def lay_out(self, s: Shape, scratch: Ptr, sizes: IntPtr) -> "Patches":
        return Patches(self.taps, self.stride, s, scratch, sizes)


class Patches(Lowered):
    """The patches of a piece of work."""

    def __init__(self, taps: int, stride: int, s: Shape, scratch: Ptr, sizes: IntPtr) -> None:
        at = self.at = _lay_out(taps, stride, s)
        self.taps, self.stride, self.s, self.scratch, self.sizes = taps, stride, s, scratch, sizes
        self.is_pixelwise = taps == stride == 1
        self.pixels = s.images * s.rows * s.out_width
        self.m_row, self.dv_row = padded(s.outs), padded(at.terms)
        self.filters, self.d_filters = at.terms * self.m_row, s.outs * self.dv_row
        self.plane, self.d_plane = Matrix(scratch, at.plane_row), Matrix(scratch + at.d_plane, at.plane_row)
        self.dv, self.m = Matrix(scratch + at.dv, self.dv_row), Matrix(scratch + at.m, self.m_row)

    def patches(self, plane: Matrix, row: Int, tap: int) -> Matrix:
        """One row of each patch of a row of z."""
        return Matrix(plane.row(row * self.stride + tap), self.s.channels * self.stride)

    def multiply(self, x: Ptr, u: Ptr) -> None:
        s, product, vectors = self.s, make_product(), self.m_row // LANES
        copy_rows(self.pixels, self.m_row, Matrix(u + self.filters * self.taps, 0), self.m)
        if self.is_pixelwise:
            pixels = Matrix(x + s.first * s.width * s.channels, s.channels)
            product(pixels, Matrix(u, self.m_row), self.m, self.pixels, s.channels, vectors, 1)
            return
        with loop(s.images) as i:
            self._surround(x, i)
            with loop(s.rows) as j:
                z_row = Matrix(self.z_pixels(i, j), self.m_row)
                for tap in range(self.taps):
                    patches, weights = self.patches(self.plane, j, tap), Matrix(u + self.filters * tap, self.m_row)
                    product(patches, weights, z_row, s.out_width, self.at.terms, vectors, 1)

    def _surround(self, x: Ptr, image: Int) -> None:
        """Put one image with its border into scratch memory."""
        s = self.s
        _make_border(self.taps, self.stride)(x, self.scratch, self.sizes, s.images, s.first, s.rows, image)

    def collect(self, image: Int) -> None:
        pass  # the products are z

    def z_pixels(self, image: Int, row: Int) -> Ptr:
        return self.m.row((image * self.s.rows + row) * self.s.out_width)

    def clear_z(self) -> None:
        is_padded = self.s.outs != self.m_row
        assert isinstance(is_padded, Condition)
        with when(is_padded):
            zero_vectors(self.m.ptr, self.pixels * self.m_row // LANES)

    def d_collect(self, image: Int) -> None:
        pass

    def d_multiply(self, d: Gradients) -> None:
        s, product, transposed, vectors = self.s, make_product(), make_product(transposed=True), self.m_row // LANES
        with when(d.first != 0):
            zero_vectors(d.du, (self.filters * self.taps + self.m_row) // LANES)
        add_rows_to(self.m, self.pixels, vectors, d.du + self.filters * self.taps)
        if self.is_pixelwise:
            transposed(Matrix(d.x, s.channels), self.m, Matrix(d.du, self.m_row), s.channels, self.pixels, vectors, 1)
            with when(d.with_dx != 0):
                product(self.m, Matrix(d.u, self.dv_row), self.dv, self.pixels, s.outs, self.dv_row // LANES, 0)
                (add_pixels if d.add else copy_pixels)(self.pixels, s.channels, self.dv, Matrix(d.dx, s.channels))
            return
        with loop(s.images) as i:
            self._surround(d.x, i)
            with loop(s.rows) as j:
                dz_row = Matrix(self.z_pixels(i, j), self.m_row)
                for tap in range(self.taps):
                    patches, d_weights = self.patches(self.plane, j, tap), Matrix(d.du + self.filters * tap, self.m_row)
                    transposed(patches, dz_row, d_weights, self.at.terms, s.out_width, vectors, 1)
        with when(d.with_dx != 0):
            _make_d_patches(self.taps, self.stride, d.add)(d.u, d.dx, self.scratch, self.sizes, s.images)


@cache
def _make_border(taps: int, stride: int) -> Kernel:
    """An image with a border of zeros."""

    @kernel
    def border(x: Ptr, scratch: Ptr, sizes: IntPtr, images: Int, first: Int, rows: Int, image: Int) -> None:
        s = Shape.read(sizes, images, first, rows)
        p = Patches(taps, stride, s, scratch, sizes)
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
    """Dx from dz."""
    product = make_product()

    @kernel
    def d_patches(u: Ptr, dx: Ptr, scratch: Ptr, sizes: IntPtr, images: Int) -> None:
        s = Shape.read(sizes, images)
        p = Patches(taps, stride, s, scratch, sizes)
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
