"""A convolution as one matrix product over pixels: every pixel of z with the patch of x that it depends on.

Scratch memory holds an image with its border of zeros (`plane`), the patches of all images (v), and z (m). The patch of
a 1x1 convolution is the pixel of x itself, which is not copied.
"""

from functools import cache
from typing import NamedTuple

from verydeep.kernels.conv._pixels import add_pixels, copy_pixels
from verydeep.kernels.conv._shape import Shape, Size, padded
from verydeep.kernels.ir._control import loop, when
from verydeep.kernels.ir._elementwise import add_rows, copy_rows
from verydeep.kernels.ir._fill import zero_vectors
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._values import Int, IntPtr, Matrix, Ptr


class _Layout(NamedTuple):
    """Sizes, and offsets into the scratch memory."""

    terms: Size  # numbers of a patch
    plane_row: Size
    plane_rows: Size
    v_row: Size
    m_row: Size
    v: Size
    m: Size
    end: Size


def _lay_out(taps: int, stride: int, s: Shape) -> _Layout:
    terms, m_row, pixels = s.channels * (taps * taps), padded(s.outs), s.images * s.rows * s.out_width
    plane_row, plane_rows = (s.width + s.padding * 2) * s.channels, s.rows * stride + (taps - 1)
    v = padded(plane_row * plane_rows)
    m = v + pixels * padded(terms)
    return _Layout(terms, plane_row, plane_rows, padded(terms), m_row, v, m, m + pixels * m_row)


class Patches:
    """The scratch memory of one piece of work inside a kernel."""

    positions, bias_position = 1, 0

    def __init__(self, taps: int, stride: int, s: Shape, start: Ptr) -> None:
        at = self.at = _lay_out(taps, stride, s)
        self.s, self.taps, self.stride = s, taps, stride
        self.rows = s.images * s.rows * s.out_width
        self.terms, self.v_row, self.m_row = at.terms, at.v_row, at.m_row
        self.plane = Matrix(start, at.plane_row)
        self.v, self.m = Matrix(start + at.v, at.v_row), Matrix(start + at.m, at.m_row)

    @property
    def is_pixelwise(self) -> bool:
        """Whether a patch is just a pixel of x."""
        return self.taps == self.stride == 1

    def v_rows(self, _n: int, x: Ptr) -> Matrix:
        """The patches of x."""
        s = self.s
        return Matrix(x + s.first * s.width * s.channels, s.channels) if self.is_pixelwise else self.v

    def dv_rows(self, _n: int) -> Matrix:
        """The gradients of the patches."""
        return self.v

    def m_rows(self, _n: int) -> Matrix:
        """The pixels of z."""
        return self.m

    def z_pixels(self, image: Int, row: Int) -> Ptr:
        """A row of an image of z."""
        return self.m.row((image * self.s.rows + row) * self.s.out_width)

    def patch_rows(self, image: Int, row: Int, tap: int) -> tuple[Matrix, Matrix]:
        """One row of all patches of a row of z: where it is in the image, and in the patches."""
        s, across = self.s, self.s.channels * self.taps
        there = Matrix(self.plane.row(row * self.stride + tap), s.channels * self.stride)
        first_patch = (image * s.rows + row) * s.out_width
        return there, Matrix(self.v.row(first_patch) + across * tap, self.v_row)


class PatchesKernels:
    """How images become patches and patches images."""

    def __init__(self, taps: int, stride: int) -> None:
        self.taps, self.stride = taps, stride

    def scratch_size(self, s: Shape) -> int:
        """The size of the scratch memory of a piece of work, in numbers."""
        end = _lay_out(self.taps, self.stride, s).end
        assert isinstance(end, int)
        return end

    def scratch(self, s: Shape, start: Ptr) -> Patches:
        """The scratch memory inside a kernel."""
        return Patches(self.taps, self.stride, s, start)

    def expand(self, x: Ptr, scratch: Ptr, sizes: IntPtr, s: Shape) -> None:
        """The patches of x."""
        if not self.taps == self.stride == 1:
            _make_expand(self.taps, self.stride)(x, scratch, sizes, s.images, s.first, s.rows)

    def collect(self, p: Patches, image: Int) -> None:
        """z is the product itself."""

    def clear_z(self, p: Patches) -> None:
        """Zeros where the gradients of z will be written, because of the padding of their rows."""
        with when(p.s.outs != p.m_row):
            zero_vectors(p.m.ptr, p.rows * p.m_row // LANES)

    def d_collect(self, p: Patches, image: Int) -> None:
        """The derivative of `collect`."""

    def d_expand(self, dx: Ptr, scratch: Ptr, sizes: IntPtr, s: Shape, add: bool) -> None:
        """dx from the gradients of the patches; with `add`, it is added."""
        if self.taps == self.stride == 1:
            p = self.scratch(s, scratch)
            (add_pixels if add else copy_pixels)(p.rows, s.channels, p.v, Matrix(dx, s.channels))
        else:
            _make_d_expand(self.taps, self.stride, add)(dx, scratch, sizes, s.images)


@cache
def _make_expand(taps: int, stride: int) -> Kernel:
    @kernel
    def patches_of_images(x: Ptr, scratch: Ptr, sizes: IntPtr, images: Int, first: Int, rows: Int) -> None:
        s = Shape.read(sizes, images, first, rows)
        p = Patches(taps, stride, s, scratch)
        zero_vectors(p.plane.ptr, padded(p.at.plane_row * p.at.plane_rows) // LANES)
        with loop(images) as i:
            with loop(p.at.plane_rows) as j:
                row = first * stride + j - s.padding
                with when(row >= 0), when(row < s.height):
                    source = Matrix(x + (i * s.height + row) * s.width * s.channels, s.channels)
                    copy_pixels(
                        s.width, s.channels, source, Matrix(p.plane.row(j) + s.padding * s.channels, s.channels)
                    )
            with loop(rows) as j:
                for tap in range(taps):
                    copy_rows(s.out_width, s.channels * taps, *p.patch_rows(i, j, tap))

    return patches_of_images


@cache
def _make_d_expand(taps: int, stride: int, add: bool) -> Kernel:
    @kernel
    def d_patches_of_images(dx: Ptr, scratch: Ptr, sizes: IntPtr, images: Int) -> None:
        s = Shape.read(sizes, images)
        p = Patches(taps, stride, s, scratch)
        with loop(images) as i:
            zero_vectors(p.plane.ptr, p.at.v // LANES)
            with loop(s.out_height) as j:
                for tap in range(taps):
                    there, patches = p.patch_rows(i, j, tap)
                    add_rows(s.out_width, s.channels * taps, there, patches, there)
            with loop(s.height) as j:
                source = Matrix(p.plane.row(j + s.padding) + s.padding * s.channels, s.channels)
                target = Matrix(dx + (i * s.height + j) * s.width * s.channels, s.channels)
                (add_pixels if add else copy_pixels)(s.width, s.channels, source, target)

    return d_patches_of_images
