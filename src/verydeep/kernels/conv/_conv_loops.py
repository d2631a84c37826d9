"""The loops of a convolutional highway layer with 3x3 receptive fields, a group of images at a time.

The transformed tiles of a group, their products and dz stay in the processor's cache; only the layer's results (y, dx)
and what the backward pass needs (z) go through memory. Images are `(row, column, channel)`; z has the channels of H,
then T, then an independent C. Transformed weights are `(position, in, out)`, and `(position, out, in)` for the backward
pass.
"""

from functools import cache
from typing import NamedTuple

from verydeep.kernels.conv._winograd import (
    BIAS,
    POSITIONS,
    d_transform_input,
    d_transform_output,
    transform_input,
    transform_output,
)
from verydeep.kernels.gate._gate_loops import make_d_gate, make_gate
from verydeep.kernels.ir._control import loop
from verydeep.kernels.ir._elementwise import strided_add, strided_copy
from verydeep.kernels.ir._fill import zero_vectors
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._product import make_product
from verydeep.kernels.ir._values import Int, Matrix, Ptr


def scratch_size(images: int, channels: int, affine_maps: int, height: int, width: int) -> int:
    """The size of the scratch memory of a group, in numbers."""
    tall, across = -(-height // 4), -(-width // 4)
    plane = (4 * tall + 2) * (4 * across + 2)
    between = 6 * (4 * across + 2)
    return channels * (plane + affine_maps * (plane + between) + POSITIONS * images * tall * across * (1 + affine_maps))


class _Scratch(NamedTuple):
    """What is where in the scratch memory of a group of images."""

    tall: Int  # tiles per column of an image
    across: Int  # tiles per row of an image
    outs: Int  # channels of z
    plane: Matrix  # x or dx with a border of zeros, its sides rounded up to whole tiles
    z_plane: Matrix  # z or dz, its sides rounded up to whole tiles
    between: Ptr
    v: Matrix  # row n: position n of the tiles of x or dx
    m: Matrix  # row n: position n of the tiles of z or dz

    @classmethod
    def lay_out(cls, start: Ptr, images: Int, channels: Int, affine_maps: int, height: Int, width: Int) -> "_Scratch":
        tall, across = (height + 3) // 4, (width + 3) // 4
        outs, row = channels * affine_maps, channels * (across * 4 + 2)
        z_plane = start + row * (tall * 4 + 2)
        between = z_plane + row * (tall * 4 + 2) * affine_maps
        v = between + row * 6 * affine_maps
        v_position, m_position = (pixel * images * tall * across for pixel in (channels, outs))
        m = v + v_position * POSITIONS
        return cls(
            tall,
            across,
            outs,
            Matrix(start, row),
            Matrix(z_plane, outs * across * 4),
            between,
            Matrix(v, v_position),
            Matrix(m, m_position),
        )

    def first_tile(self, image: Int, row: Int) -> Int:
        """The number of the first tile of a row of tiles."""
        return (image * self.tall + row) * self.across


@cache
def make_conv_forward(affine_maps: int, activation: str) -> Kernel:
    """The forward pass: z and y of a group of images."""
    product, gate, transform = make_product(), make_gate(affine_maps, activation), _make_transform(affine_maps)

    @kernel(flush=True)
    def conv_forward(
        x: Ptr, u: Ptr, bias: Ptr, z: Ptr, y: Ptr, scratch: Ptr, images: Int, channels: Int, height: Int, width: Int
    ) -> None:
        s = _Scratch.lay_out(scratch, images, channels, affine_maps, height, width)
        tiles = images * s.tall * s.across
        transform(x, scratch, images, channels, height, width)
        strided_copy(tiles, s.outs // LANES, Matrix(bias, 0), Matrix(s.m.row(BIAS), s.outs))
        for n in range(POSITIONS):
            v, m, offset = Matrix(s.v.row(n), channels), Matrix(s.m.row(n), s.outs), s.outs * channels * n
            product(v, Matrix(u + offset, s.outs), m, tiles, channels, s.outs // LANES, int(n == BIAS))
        with loop(images) as i:
            with loop(s.tall) as j:
                m = s.m.submatrix(column=s.first_tile(i, j) * s.outs)
                transform_output(m, s.between, s.outs, s.across, s.z_plane.submatrix(j * 4))
            z_image = Matrix(z + s.outs * width * height * i, s.outs * width)
            strided_copy(height, width * s.outs // LANES, s.z_plane, z_image)
        x_pixels, y_pixels = (Matrix(start, channels) for start in (x, y))
        z_pixels = [Matrix(z + channels * i, s.outs) for i in range(affine_maps)]
        gate(images * height * width, channels // LANES, x_pixels, *z_pixels, y_pixels)

    return conv_forward


@cache
def make_conv_backward(affine_maps: int, activation: str) -> Kernel:
    """The backward pass: dx, and the gradients of u, `(position, in, out)`, and of the bias, which are accumulated."""
    product, transposed, transform = make_product(), make_product(transposed=True), _make_transform(affine_maps)
    d_output = _make_d_output(affine_maps, activation)

    @kernel(flush=True)
    def conv_backward(
        dy: Ptr,
        x: Ptr,
        z: Ptr,
        u: Ptr,
        dx: Ptr,
        du: Ptr,
        d_bias: Ptr,
        scratch: Ptr,
        images: Int,
        channels: Int,
        height: Int,
        width: Int,
    ) -> None:
        s = _Scratch.lay_out(scratch, images, channels, affine_maps, height, width)
        tiles = images * s.tall * s.across
        d_output(dy, x, z, dx, scratch, images, channels, height, width)
        total = Matrix(d_bias, 0)
        strided_add(tiles, s.outs // LANES, total, Matrix(s.m.row(BIAS), s.outs), total)
        transform(x, scratch, images, channels, height, width)
        for n in range(POSITIONS):
            v, m, offset = Matrix(s.v.row(n), channels), Matrix(s.m.row(n), s.outs), s.outs * channels * n
            transposed(v, m, Matrix(du + offset, s.outs), channels, tiles, s.outs // LANES, 1)
            product(m, Matrix(u + offset, channels), v, tiles, s.outs, channels // LANES, 0)
        with loop(images) as i:
            zero_vectors(s.plane.ptr, s.plane.row_stride * 2 // LANES)
            with loop(s.tall) as j:
                v = s.v.submatrix(column=s.first_tile(i, j) * channels)
                d_transform_input(v, s.plane.at(s.between), channels, s.across, s.plane.row(j * 4))
            dx_image = Matrix(dx + channels * width * height * i, channels * width)
            inside = s.plane.submatrix(1, channels)
            strided_add(height, width * channels // LANES, dx_image, inside, dx_image)

    return conv_backward


@cache
def _make_transform(affine_maps: int) -> Kernel:
    """The transformed tiles v of images."""

    @kernel
    def conv_transform(x: Ptr, scratch: Ptr, images: Int, channels: Int, height: Int, width: Int) -> None:
        s = _Scratch.lay_out(scratch, images, channels, affine_maps, height, width)
        zero_vectors(s.plane.ptr, s.plane.row_stride * (s.tall * 4 + 2) // LANES)
        with loop(images) as i:
            x_image = Matrix(x + channels * width * height * i, channels * width)
            strided_copy(height, width * channels // LANES, x_image, s.plane.submatrix(1, channels))
            with loop(s.tall) as j:
                v = s.v.submatrix(column=s.first_tile(i, j) * channels)
                transform_input(s.plane.submatrix(j * 4), s.between, channels, s.across, v)

    return conv_transform


@cache
def _make_d_output(affine_maps: int, activation: str) -> Kernel:
    """The carried part of dx, and dz transformed to m."""
    d_gate = make_d_gate(affine_maps, activation)

    @kernel
    def conv_d_output(
        dy: Ptr, x: Ptr, z: Ptr, dx: Ptr, scratch: Ptr, images: Int, channels: Int, height: Int, width: Int
    ) -> None:
        s = _Scratch.lay_out(scratch, images, channels, affine_maps, height, width)
        zero_vectors(s.z_plane.ptr, s.z_plane.row_stride * s.tall * 4 // LANES)
        with loop(images) as i:
            with loop(height) as j:
                offset = channels * width * height * i + channels * width * j
                dy_pixels, x_pixels, dx_pixels = (Matrix(start + offset, channels) for start in (dy, x, dx))
                z_pixels, dz_pixels = (
                    [Matrix(start + channels * n, s.outs) for n in range(affine_maps)]
                    for start in (z + offset * affine_maps, s.z_plane.row(j))
                )
                d_gate(width, channels // LANES, dy_pixels, x_pixels, *z_pixels, dx_pixels, *dz_pixels)
            with loop(s.tall) as j:
                m = s.m.submatrix(column=s.first_tile(i, j) * s.outs)
                d_transform_output(s.z_plane.submatrix(j * 4), s.between, s.outs, s.across, m)

    return conv_d_output
