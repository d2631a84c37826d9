"""A convolution as 36 matrix products over tiles: the images of a piece of work as Winograd's tiles, and back.

Scratch memory holds an image with its border of zeros (`plane`), an image of z (`z_plane`), rows between two transforms,
and the tiles of all images: v of x, m of z. Channels are padded to whole registers.
"""

from functools import cache
from typing import NamedTuple

from verydeep.kernels.conv._pixels import add_pixels, copy_pixels
from verydeep.kernels.conv._shape import Gradients, Shape, Size, padded
from verydeep.kernels.conv._winograd import BIAS, POSITIONS, SIDE, make_transforms, outputs_per_tile
from verydeep.kernels.ir._control import loop, when
from verydeep.kernels.ir._elementwise import copy_rows
from verydeep.kernels.ir._fill import zero_vectors
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._product import make_product
from verydeep.kernels.ir._sums import add_rows_to
from verydeep.kernels.ir._values import Int, IntPtr, Matrix, Ptr

_APART = LANES  # numbers between positions, which would otherwise compete for the same lines of the cache


class _Layout(NamedTuple):
    """Sizes, and offsets into the scratch memory."""

    tall: Size  # rows of tiles
    across: Size  # tiles in a row
    pixel: Size  # numbers of a pixel of x
    z_pixel: Size  # numbers of a pixel of z
    plane_row: Size
    plane_rows: Size
    z_plane_row: Size
    v_position: Size
    m_position: Size
    z_plane: Size
    between: Size
    v: Size
    m: Size
    end: Size


def _lay_out(s: Shape, step: int) -> _Layout:
    tall, across = (s.rows + (step - 1)) // step, (s.out_width + (step - 1)) // step
    pixel, z_pixel, tiles = padded(s.channels), padded(s.outs), s.images * tall * across
    plane_row, plane_rows, z_plane_row = (across * step + SIDE - step) * pixel, tall * step + SIDE - step, across * step
    z_plane_row = z_plane_row * z_pixel
    v_position, m_position = tiles * pixel + _APART, tiles * z_pixel + _APART
    z_plane = plane_row * plane_rows
    between = z_plane + z_plane_row * tall * step
    v = between + (plane_row + z_plane_row) * SIDE
    m = v + v_position * POSITIONS
    sizes = tall, across, pixel, z_pixel, plane_row, plane_rows, z_plane_row, v_position, m_position
    return _Layout(*sizes, z_plane, between, v, m, m + m_position * POSITIONS)


class Tiles:
    """The scratch memory of one piece of work inside a kernel."""

    def __init__(self, taps: int, s: Shape, start: Ptr) -> None:
        at = self.at = _lay_out(s, outputs_per_tile(taps))
        self.s, self.step = s, outputs_per_tile(taps)
        self.rows = s.images * at.tall * at.across
        self.v_row, self.m_row, self.filters = at.pixel, at.z_pixel, s.channels * at.z_pixel
        self.plane = Matrix(start, at.plane_row)
        self.z_plane = Matrix(start + at.z_plane, at.z_plane_row)
        self.between = start + at.between
        self.v, self.m = Matrix(start + at.v, at.v_position), Matrix(start + at.m, at.m_position)

    def v_rows(self, n: int) -> Matrix:
        """Position n of the tiles of x, or of their gradients."""
        return Matrix(self.v.row(n), self.v_row)

    def m_rows(self, n: int) -> Matrix:
        """Position n of the tiles of z, or of their gradients."""
        return Matrix(self.m.row(n), self.m_row)

    def z_pixels(self, _image: Int, row: Int) -> Ptr:
        """A row of the image of z that is in scratch memory."""
        return self.z_plane.row(row)

    def v_of(self, image: Int, row: Int) -> Matrix:
        """The tiles of x from one row of tiles on."""
        return self.v.submatrix(column=(image * self.at.tall + row) * self.at.across * self.v_row)

    def m_of(self, image: Int, row: Int) -> Matrix:
        """The tiles of z from one row of tiles on."""
        return self.m.submatrix(column=(image * self.at.tall + row) * self.at.across * self.m_row)


class TilesKernels:
    """How images become tiles and tiles images, for receptive fields of `taps` by `taps` and stride 1."""

    def __init__(self, taps: int) -> None:
        self.taps = taps

    def scratch_size(self, s: Shape) -> int:
        """The size of the scratch memory of a piece of work, in numbers."""
        end = _lay_out(s, outputs_per_tile(self.taps)).end
        assert isinstance(end, int)
        return end

    def scratch(self, s: Shape, start: Ptr) -> Tiles:
        """The scratch memory inside a kernel."""
        return Tiles(self.taps, s, start)

    def multiply(self, t: Tiles, x: Ptr, u: Ptr, scratch: Ptr, sizes: IntPtr) -> None:
        """The tiles of z, with the bias."""
        s, product = t.s, make_product()
        _make_expand(self.taps)(x, scratch, sizes, s.images, s.first, s.rows)
        copy_rows(t.rows, t.m_row, Matrix(u + t.filters * POSITIONS, 0), t.m_rows(BIAS))
        for n in range(POSITIONS):
            weights = Matrix(u + t.filters * n, t.m_row)
            product(t.v_rows(n), weights, t.m_rows(n), t.rows, s.channels, t.m_row // LANES, int(n == BIAS))

    def collect(self, t: Tiles, image: Int) -> None:
        """An image of z from its tiles."""
        with loop(t.at.tall) as j:
            rows = t.z_plane.submatrix(j * t.step)
            make_transforms(self.taps).output(t.m_of(image, j), t.between, t.m_row, t.at.across, rows)

    def clear_z(self, t: Tiles) -> None:
        """Zeros where the gradients of images of z will be written, also outside of the images."""
        zero_vectors(t.z_plane.ptr, t.at.z_plane_row * t.at.tall * t.step // LANES)

    def d_collect(self, t: Tiles, image: Int) -> None:
        """The derivative of `collect`: tiles from an image of dz."""
        with loop(t.at.tall) as j:
            rows = t.z_plane.submatrix(j * t.step)
            make_transforms(self.taps).d_output(rows, t.between, t.m_row, t.at.across, t.m_of(image, j))

    def d_multiply(self, t: Tiles, d: Gradients, scratch: Ptr, sizes: IntPtr, add: bool) -> None:
        """The derivative of `multiply`: du and dx from the gradients of the tiles of z."""
        s, product, transposed, vectors = t.s, make_product(), make_product(transposed=True), t.m_row // LANES
        d_bias = d.du + t.filters * POSITIONS
        with when(d.first != 0):
            zero_vectors(d_bias, vectors)
        add_rows_to(t.m_rows(BIAS), t.rows, vectors, d_bias)
        _make_expand(self.taps)(d.x, scratch, sizes, s.images, s.first, s.rows)
        for n in range(POSITIONS):
            v, m = t.v_rows(n), t.m_rows(n)
            transposed(v, m, Matrix(d.du + t.filters * n, t.m_row), s.channels, t.rows, vectors, 1 - d.first)
            with when(d.with_dx != 0):
                weights = Matrix(d.u + s.outs * t.v_row * n, t.v_row)
                product(m, weights, v, t.rows, s.outs, t.v_row // LANES, 0)
        with when(d.with_dx != 0):
            _make_d_expand(self.taps, add)(d.dx, scratch, sizes, s.images)


@cache
def _make_expand(taps: int) -> Kernel:
    @kernel
    def tiles_of_images(x: Ptr, scratch: Ptr, sizes: IntPtr, images: Int, first: Int, rows: Int) -> None:
        s = Shape.read(sizes, images, first, rows)
        t = Tiles(taps, s, scratch)
        zero_vectors(t.plane.ptr, t.at.plane_row * t.at.plane_rows // LANES)
        with loop(images) as i:
            with loop(t.at.plane_rows) as j:
                row = first + j - s.padding
                with when(row >= 0), when(row < s.height):
                    source = Matrix(x + (i * s.height + row) * s.width * s.channels, s.channels)
                    copy_pixels(s.width, s.channels, source, Matrix(t.plane.row(j) + s.padding * t.v_row, t.v_row))
            with loop(t.at.tall) as j:
                rows_of_tiles = t.plane.submatrix(j * t.step)
                make_transforms(taps).input(rows_of_tiles, t.between, t.v_row, t.at.across, t.v_of(i, j))

    return tiles_of_images


@cache
def _make_d_expand(taps: int, add: bool) -> Kernel:
    @kernel
    def d_tiles_of_images(dx: Ptr, scratch: Ptr, sizes: IntPtr, images: Int) -> None:
        s = Shape.read(sizes, images)
        t = Tiles(taps, s, scratch)
        with loop(images) as i:
            zero_vectors(t.plane.ptr, t.at.plane_row * (SIDE - t.step) // LANES)
            with loop(t.at.tall) as j:
                between = t.plane.at(t.between)
                make_transforms(taps).d_input(t.v_of(i, j), between, t.v_row, t.at.across, t.plane.row(j * t.step))
            with loop(s.height) as j:
                source = Matrix(t.plane.row(j + s.padding) + s.padding * t.v_row, t.v_row)
                target = Matrix(dx + (i * s.height + j) * s.width * s.channels, s.channels)
                (add_pixels if add else copy_pixels)(s.width, s.channels, source, target)

    return d_tiles_of_images
