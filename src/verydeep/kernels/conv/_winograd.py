"""Winograd's minimal filtering F(4x4, 3x3) (Lavin & Gray 2015): 36 products for 16 outputs instead of 144.

`z = A' [(G w G') * (B' x B)] A` for every tile of 6x6 inputs and 4x4 outputs; the sum over channels is one matrix
product for each of the 36 positions in a tile. The backward pass is the derivative of the same formula. Channels are
adjacent in memory, so every transform works on whole registers.

Each of the four transforms handles one row of tiles, first along one axis, then along the other. `between` is memory
for the six rows between them, as long as those of the image. Row n of v and m holds position n of all tiles.
"""

from collections.abc import Callable

import numpy as np

from verydeep.kernels.ir._control import loop
from verydeep.kernels.ir._elementwise import make_strided_elementwise
from verydeep.kernels.ir._fill import zero_vectors
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._values import Int, Matrix, Ptr
from verydeep.kernels.ir._vector import Vec

POSITIONS = 36
BIAS = 7  # a number added to this position of a tile is added to all outputs of the tile
_G = np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]]) / 24
FILTER = np.kron(_G, _G).astype(np.float32)  # from the 9 weights of a filter to its 36 positions


def _input(d0: Vec, d1: Vec, d2: Vec, d3: Vec, d4: Vec, d5: Vec) -> tuple[Vec, ...]:
    """B' d."""
    a, b = d4 - d2 * 4.0, d3 - d1 * 4.0
    c, e = d4 - d2, (d3 - d1) * 2.0
    return d0 * 4.0 - d2 * 5.0 + d4, a + b, a - b, c + e, c - e, d1 * 4.0 - d3 * 5.0 + d5


def _d_input(v0: Vec, v1: Vec, v2: Vec, v3: Vec, v4: Vec, v5: Vec, old0: Vec, old1: Vec) -> tuple[Vec, ...]:
    """B v, added to the two pixels that the tile shares with the one before."""
    s, d, r, q = v1 + v2, v1 - v2, v3 + v4, v3 - v4
    i0, i1 = v0 * 4.0, (v5 - d) * 4.0 - q * 2.0
    return old0 + i0, old1 + i1, v0 * -5.0 - s * 4.0 - r, d + q * 2.0 - v5 * 5.0, v0 + s + r, v5


def _output(m0: Vec, m1: Vec, m2: Vec, m3: Vec, m4: Vec, m5: Vec) -> tuple[Vec, ...]:
    """A' m."""
    s, d, r, q = m1 + m2, m1 - m2, m3 + m4, m3 - m4
    return m0 + s + r, d + q * 2.0, s + r * 4.0, d + q * 8.0 + m5


def _d_output(g0: Vec, g1: Vec, g2: Vec, g3: Vec) -> tuple[Vec, ...]:
    """A g."""
    even, odd, even4, odd2 = g0 + g2, g1 + g3, g0 + g2 * 4.0, g1 * 2.0 + g3 * 8.0
    return g0, even + odd, even - odd, even4 + odd2, even4 - odd2, g3


_along_output = make_strided_elementwise("winograd_output_axis", _output, inputs=6, outputs=4)
_along_d_input = make_strided_elementwise("winograd_d_input_axis", _d_input, inputs=8, outputs=6)


def _make_to_tiles(name: str, lines: int, formula: Callable[..., tuple[Vec, ...]]) -> Kernel:
    """From `lines` rows of an image to the 36 positions of its tiles: along columns, then along rows."""
    along = make_strided_elementwise(f"winograd_{name}_axis", formula, inputs=lines, outputs=6)

    @kernel(name=f"winograd_{name}")
    def transform(image: Matrix, between: Ptr, channels: Int, across: Int, tiles: Matrix) -> None:
        between_rows = image.at(between)
        along(1, image.row_stride // LANES, *_single_rows(image, lines), *_single_rows(between_rows, 6))
        with loop(6) as i:
            pixels = _pixels(between_rows.row(i), channels, lines)
            along(across, channels // LANES, *pixels, *_positions(tiles, i, channels))

    return transform


transform_input = _make_to_tiles("input", 6, _input)  # B' d B of 6 rows of an image
d_transform_output = _make_to_tiles("d_output", 4, _d_output)  # A g A' of 4 rows: the derivative of `transform_output`


@kernel(name="winograd_d_input")
def d_transform_input(v: Matrix, between: Matrix, channels: Int, across: Int, image: Ptr) -> None:
    """The derivative of `transform_input`: its first two rows are accumulated, the other four are written."""
    with loop(6) as i:
        pixels = _pixels(between.row(i), channels, 6)
        zero_vectors(between.row(i), channels * 2 // LANES)
        _along_d_input(across, channels // LANES, *_positions(v, i, channels), *pixels[:2], *pixels)
    targets = _single_rows(between.at(image), 6)
    _along_d_input(1, between.row_stride // LANES, *_single_rows(between, 6), *targets[:2], *targets)


@kernel(name="winograd_output")
def transform_output(m: Matrix, between: Ptr, channels: Int, across: Int, image: Matrix) -> None:
    """A' m A as 4 rows of an image."""
    between_rows = image.at(between)
    with loop(6) as i:
        pixels = _pixels(between_rows.row(i), channels, 4)
        _along_output(across, channels // LANES, *_positions(m, i, channels), *pixels)
    _along_output(1, image.row_stride // LANES, *_single_rows(between_rows, 6), *_single_rows(image, 4))


def _positions(tiles: Matrix, i: Int, channels: Int) -> list[Matrix]:
    """Row i of the positions of all tiles: 6 matrices with one row per tile."""
    return [Matrix(tiles.row(i * 6 + n), channels) for n in range(6)]


def _pixels(row: Ptr, channels: Int, count: int) -> list[Matrix]:
    """The first `count` pixels of all tiles in a row of an image: matrices with one row per tile."""
    return [Matrix(row + channels * n, channels * 4) for n in range(count)]


def _single_rows(matrix: Matrix, count: int) -> list[Matrix]:
    """The first rows of a matrix, each as a matrix with one row."""
    return [Matrix(matrix.row(n), 0) for n in range(count)]
