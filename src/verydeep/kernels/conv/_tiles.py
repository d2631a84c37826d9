"""A convolution as 36 matrix products over tiles: the images of a piece of work as Winograd's tiles, and back.

Scratch memory holds an image with its border of zeros (`plane`), an image of z (`z_plane`), rows between transforms,
and the tiles of all images: v of x, m of z. Channels are padded to whole registers.
"""

from functools import cache
from typing import NamedTuple

from verydeep.kernels.conv._lowering import Gradients, Lowered, Lowering
from verydeep.kernels.conv._pixels import add_pixels, copy_pixels
from verydeep.kernels.conv._shape import Shape, Size, padded
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


class _TilesLayout(NamedTuple):
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


def _lay_out(s: Shape, step: int) -> _TilesLayout:
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
    return _TilesLayout(*sizes, z_plane, between, v, m, m + m_position * POSITIONS)


class Winograd(Lowering):
    """Winograd's tiles, for receptive fields of `taps` by `taps` and stride 1."""

    def __init__(self, taps: int) -> None:
        self.taps = taps

    def scratch_size(self, s: Shape) -> int:
        end = _lay_out(s, outputs_per_tile(self.taps)).end
        assert isinstance(end, int)
        return end

    def lay_out(self, s: Shape, scratch: Ptr, sizes: IntPtr) -> "Tiles":
        return Tiles(self.taps, s, scratch, sizes)


class Tiles(Lowered):
    """The tiles of a piece of work."""

    def __init__(self, taps: int, s: Shape, scratch: Ptr, sizes: IntPtr) -> None:
        self.step = outputs_per_tile(taps)
        at = self.at = _lay_out(s, self.step)
        self.taps, self.s, self.scratch, self.sizes = taps, s, scratch, sizes
        self.tiles = s.images * at.tall * at.across
        self.v_row, self.m_row, self.filters = at.pixel, at.z_pixel, s.channels * at.z_pixel
        self.plane = Matrix(scratch, at.plane_row)
        self.z_plane = Matrix(scratch + at.z_plane, at.z_plane_row)
        self.between = scratch + at.between
        self.v, self.m = Matrix(scratch + at.v, at.v_position), Matrix(scratch + at.m, at.m_position)

    def v_rows(self, n: int) -> Matrix:
        """Position n of the tiles of x, or of their gradients."""
        return Matrix(self.v.row(n), self.v_row)

    def m_rows(self, n: int) -> Matrix:
        """Position n of the tiles of z, or of their gradients."""
        return Matrix(self.m.row(n), self.m_row)

    def v_of(self, image: Int, row: Int) -> Matrix:
        """The tiles of x from one row of tiles on."""
        return self.v.submatrix(column=(image * self.at.tall + row) * self.at.across * self.v_row)

    def m_of(self, image: Int, row: Int) -> Matrix:
        """The tiles of z from one row of tiles on."""
        return self.m.submatrix(column=(image * self.at.tall + row) * self.at.across * self.m_row)

    def multiply(self, x: Ptr, u: Ptr) -> None:
        product, vectors = make_product(), self.m_row // LANES
        self._expand(x)
        copy_rows(self.tiles, self.m_row, Matrix(u + self.filters * POSITIONS, 0), self.m_rows(BIAS))
        for n in range(POSITIONS):
            weights = Matrix(u + self.filters * n, self.m_row)
            product(self.v_rows(n), weights, self.m_rows(n), self.tiles, self.s.channels, vectors, int(n == BIAS))

    def _expand(self, x: Ptr) -> None:
        _make_expand(self.taps)(x, self.scratch, self.sizes, self.s.images, self.s.first, self.s.rows)

    def collect(self, image: Int) -> None:
        transform = make_transforms(self.taps).output
        with loop(self.at.tall) as j:
            rows = self.z_plane.submatrix(j * self.step)
            transform(self.m_of(image, j), self.between, self.m_row, self.at.across, rows)

    def z_pixels(self, image: Int, row: Int) -> Ptr:
        return self.z_plane.row(row)

    def clear_z(self) -> None:
        zero_vectors(self.z_plane.ptr, self.at.z_plane_row * self.at.tall * self.step // LANES)

    def d_collect(self, image: Int) -> None:
        transform = make_transforms(self.taps).d_output
        with loop(self.at.tall) as j:
            rows = self.z_plane.submatrix(j * self.step)
            transform(rows, self.between, self.m_row, self.at.across, self.m_of(image, j))

    def d_multiply(self, d: Gradients) -> None:
        s, vectors, product, transposed = self.s, self.m_row // LANES, make_product(), make_product(transposed=True)
        d_bias = d.du + self.filters * POSITIONS
        with when(d.first != 0):
            zero_vectors(d_bias, vectors)
        add_rows_to(self.m_rows(BIAS), self.tiles, vectors, d_bias)
        self._expand(d.x)
        for n in range(POSITIONS):
            v, m, d_weights = self.v_rows(n), self.m_rows(n), Matrix(d.du + self.filters * n, self.m_row)
            transposed(v, m, d_weights, s.channels, self.tiles, vectors, 1 - d.first)
            with when(d.with_dx != 0):
                weights = Matrix(d.u + s.outs * self.v_row * n, self.v_row)
                product(m, weights, v, self.tiles, s.outs, self.v_row // LANES, 0)
        with when(d.with_dx != 0):
            _make_d_expand(self.taps, d.add)(d.dx, self.scratch, self.sizes, s.images)


@cache
def _make_expand(taps: int) -> Kernel:
    @kernel
    def tiles_of_images(x: Ptr, scratch: Ptr, sizes: IntPtr, images: Int, first: Int, rows: Int) -> None:
        s = Shape.read(sizes, images, first, rows)
        t = Tiles(taps, s, scratch, sizes)
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
        t = Tiles(taps, s, scratch, sizes)
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
