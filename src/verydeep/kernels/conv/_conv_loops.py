"""The loops of a convolutional highway layer with 3x3 receptive fields, a group of images at a time.

The transformed tiles of a group, their products and dz stay in the processor's cache; only the layer's results (y, dx)
and what the backward pass needs (z) go through memory. Images are `(row, column, channel)`; z has the channels of H,
then T, then an independent C. Transformed weights are `(place, in, out)`, and `(place, out, in)` for the backward pass.
"""

from typing import NamedTuple

from verydeep.kernels.conv._winograd import BIAS, PLACES, make_d_enter, make_d_leave, make_enter, make_leave
from verydeep.kernels.gate._gate_loops import d_gate_pass, gate_pass
from verydeep.kernels.ir._ir import LANES, NUMBER, REGISTER, Kernel, N, each
from verydeep.kernels.ir._passes import make_strided_pass, make_zero
from verydeep.kernels.ir._product import make_product
from verydeep.kernels.ir._vector import V


def numbers_of_scratch(images: int, channels: int, maps: int, height: int, width: int) -> int:
    """The size of the scratch memory of a group."""
    tall, across = -(-height // 4), -(-width // 4)
    plane = (4 * tall + 2) * (4 * across + 2)
    between = 6 * (4 * across + 2)
    return channels * (plane + maps * (plane + between) + PLACES * images * tall * across * (1 + maps))


class _Room(NamedTuple):
    """Sizes (distances are in bytes) and addresses in the scratch memory."""

    tall: N  # tiles
    across: N
    pixel: N  # of x
    pre: N  # pixel of z
    row: N  # of the plane
    image: N  # of x
    plane: N  # x or dx with a border of zeros, its sides rounded up to whole tiles
    wide: N  # z or dz, also rounded up
    rows: N
    v: N
    v_place: N
    m: N
    m_place: N

    @classmethod
    def lay_out(cls, scratch: N, images: N, channels: N, maps: int, height: N, width: N) -> "_Room":
        tall, across = (height + 3) // 4, (width + 3) // 4
        pixel = channels * NUMBER
        pre, row = pixel * maps, pixel * (across * 4 + 2)
        wide = scratch + row * (tall * 4 + 2)
        rows = wide + row * (tall * 4 + 2) * maps
        v = rows + row * 6 * maps
        v_place, m_place = (size * images * tall * across for size in (pixel, pre))
        image = pixel * width * height
        return cls(tall, across, pixel, pre, row, image, scratch, wide, rows, v, v_place, v + v_place * PLACES, m_place)

    def tiles(self, image: N, row: N) -> N:
        """The number of the first tile of a row of tiles."""
        return (image * self.tall + row) * self.across


def make_conv_forward(maps: int, activation: str) -> Kernel:
    """`forward(x, u, bias, z, y, scratch, images, channels, height, width)`: z and y of a group of images."""
    product, leave, gate, copy = make_product(True), make_leave(), gate_pass(maps, activation), _make_copy()
    transform = _make_transform(maps)

    def emit(x: N, u: N, bias: N, z: N, y: N, scratch: N, images: N, channels: N, height: N, width: N) -> None:
        room = _Room.lay_out(scratch, images, channels, maps, height, width)
        outs, tiles = channels * maps, images * room.tall * room.across
        transform(x, scratch, images, channels, height, width)
        copy(tiles, outs // LANES, bias, room.m + room.m_place * BIAS, 0, room.pre)
        for n in range(PLACES):
            v, m, u_n = room.v + room.v_place * n, room.m + room.m_place * n, u + room.pre * channels * n
            product(v, room.pixel, u_n, room.pre, m, room.pre, tiles, channels, outs // LANES, int(n == BIAS))

        def image(i: N) -> None:
            line, whole = room.pre * width, room.pre * room.across * 4

            def row(j: N) -> None:
                m = room.m + room.tiles(i, j) * room.pre
                leave(m, room.m_place, room.rows, outs, room.across, room.wide + whole * j * 4, whole)

            each(room.tall, row)
            copy(height, width * outs // LANES, room.wide, z + line * height * i, whole, line)

        each(images, image)
        z_parts = [z + room.pixel * i for i in range(maps)]
        gate(images * height * width, channels // LANES, x, *z_parts, y, room.pixel, *[room.pre] * maps, room.pixel)

    return Kernel("conv_forward", 10, emit, flush=True)


def make_conv_backward(maps: int, activation: str) -> Kernel:
    """`backward(dy, x, z, u, dx, du, d_bias, scratch, images, channels, height, width)`.

    The gradients of u, `(place, in, out)`, and of the bias are accumulated.
    """
    by_row, by_column, d_enter = make_product(True), make_product(False), make_d_enter()
    transform, add, zero = _make_transform(maps), _make_add(), make_zero()
    d_leave = _make_d_leave(maps, activation)

    def emit(
        dy: N, x: N, z: N, u: N, dx: N, du: N, d_bias: N, scratch: N, images: N, channels: N, height: N, width: N
    ) -> None:
        room = _Room.lay_out(scratch, images, channels, maps, height, width)
        outs, tiles = channels * maps, images * room.tall * room.across
        d_leave(dy, x, z, dx, scratch, images, channels, height, width)
        add(tiles, outs // LANES, d_bias, room.m + room.m_place * BIAS, d_bias, 0, room.pre, 0)
        transform(x, scratch, images, channels, height, width)
        for n in range(PLACES):
            v, m, at = room.v + room.v_place * n, room.m + room.m_place * n, room.pre * channels * n
            by_column(v, room.pixel, m, room.pre, du + at, room.pre, channels, tiles, outs // LANES, 1)
            by_row(m, room.pre, u + at, room.pixel, v, room.pixel, tiles, outs, channels // LANES, 0)

        def image(i: N) -> None:
            zero(room.plane, room.row * 2 // REGISTER)

            def row(j: N) -> None:
                v = room.v + room.tiles(i, j) * room.pixel
                d_enter(v, room.v_place, room.rows, room.row, channels, room.across, room.plane + room.row * j * 4)

            each(room.tall, row)
            line, here = room.pixel * width, dx + room.image * i
            inside = room.plane + room.row + room.pixel
            add(height, width * channels // LANES, here, inside, here, line, room.row, line)

        each(images, image)

    return Kernel("conv_backward", 12, emit, flush=True)


def _make_transform(maps: int) -> Kernel:
    """`transform(x, scratch, images, channels, height, width)`: the transformed tiles V of the images."""
    enter, copy, zero = make_enter(), _make_copy(), make_zero()

    def emit(x: N, scratch: N, images: N, channels: N, height: N, width: N) -> None:
        room = _Room.lay_out(scratch, images, channels, maps, height, width)
        zero(room.plane, room.row * (room.tall * 4 + 2) // REGISTER)

        def image(i: N) -> None:
            line = room.pixel * width
            inside = room.plane + room.row + room.pixel
            copy(height, width * channels // LANES, x + room.image * i, inside, line, room.row)

            def row(j: N) -> None:
                v = room.v + room.tiles(i, j) * room.pixel
                enter(room.plane + room.row * j * 4, room.row, room.rows, channels, room.across, v, room.v_place)

            each(room.tall, row)

        each(images, image)

    return Kernel("conv_transform", 6, emit)


def _make_d_leave(maps: int, activation: str) -> Kernel:
    """`d_leave(dy, x, z, dx, scratch, images, channels, height, width)`: the carried part of dx, and dz transformed."""
    gate, leave, zero = d_gate_pass(maps, activation), make_d_leave(), make_zero()

    def emit(dy: N, x: N, z: N, dx: N, scratch: N, images: N, channels: N, height: N, width: N) -> None:
        room = _Room.lay_out(scratch, images, channels, maps, height, width)
        whole, outs = room.pre * room.across * 4, channels * maps
        zero(room.wide, whole * room.tall * 4 // REGISTER)

        def image(i: N) -> None:
            def line(j: N) -> None:
                at, there = room.image * i + room.pixel * width * j, room.wide + whole * j
                z_parts, dz_parts = ([p + room.pixel * n for n in range(maps)] for p in (z + at * maps, there))
                steps = [room.pixel, room.pixel, *[room.pre] * maps, room.pixel, *[room.pre] * maps]
                gate(width, channels // LANES, dy + at, x + at, *z_parts, dx + at, *dz_parts, *steps)

            def row(j: N) -> None:
                m = room.m + room.tiles(i, j) * room.pre
                leave(room.wide + whole * j * 4, whole, room.rows, outs, room.across, m, room.m_place)

            each(height, line)
            each(room.tall, row)

        each(images, image)

    return Kernel("conv_d_leave", 9, emit)


def _make_copy() -> Kernel:
    return make_strided_pass("copy", 1, 1, lambda a: (a,))


def _make_add() -> Kernel:
    def add(a: V, b: V) -> tuple[V, ...]:
        return (a + b,)

    return make_strided_pass("add", 2, 1, add)
