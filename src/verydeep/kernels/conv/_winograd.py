"""Winograd's minimal filtering (Lavin & Gray 2015) in tiles of 6x6 inputs, for 3x3 and 5x5 receptive fields.

`z = A' [(G w G') * (B' x B)] A`: a tile gives 4x4 outputs of a 3x3 convolution, with 36 products instead of 144, or 2x2
outputs of a 5x5 convolution, with 36 products instead of 100. The sum over channels is one matrix product for each of
the 36 positions in a tile. The backward pass is the derivative of the same formula. Channels are adjacent in memory and
padded to whole registers, so every transform works on whole registers.

Each of the four transforms handles one row of tiles, first along one axis, then along the other. `between` is memory
for the six rows between them, as long as those of the image. Row n of v and m holds position n of all tiles.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from verydeep.kernels.ir._control import loop
from verydeep.kernels.ir._fill import zero_vectors
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._values import Int, Matrix, Ptr
from verydeep.kernels.ir._vector import Vec, load, store

SIDE = 6  # of a tile of inputs
POSITIONS = SIDE * SIDE
BIAS = 7  # a number added to this position of a tile is added to all outputs of the tile
_POINTS = (0, 1, -1, 2, -2)  # where polynomials are evaluated; the sixth point is infinity


def outputs_per_tile(taps: int) -> int:
    """The side of the outputs of a tile."""
    return SIDE + 1 - taps


def filter_matrix(taps: int) -> NDArray[np.float64]:
    """G, the matrix from the weights of a filter to the positions of a tile, along one axis."""
    scales = [float(np.prod([p - other for other in _POINTS if other != p])) for p in _POINTS]
    rows = [[p**k / scale for k in range(taps)] for p, scale in zip(_POINTS, scales, strict=True)]
    return np.array([*rows, [0.0] * (taps - 1) + [1.0]])


def _input(d0: Vec, d1: Vec, d2: Vec, d3: Vec, d4: Vec, d5: Vec) -> tuple[Vec, ...]:
    """B' d."""
    a, b = d4 - d2 * 4.0, d3 - d1 * 4.0
    c, e = d4 - d2, (d3 - d1) * 2.0
    return d0 * 4.0 - d2 * 5.0 + d4, a + b, a - b, c + e, c - e, d1 * 4.0 - d3 * 5.0 + d5


def _d_input(v0: Vec, v1: Vec, v2: Vec, v3: Vec, v4: Vec, v5: Vec, *old: Vec) -> tuple[Vec, ...]:
    """B v, added to the pixels that the tile shares with those before."""
    s, d, r, q = v1 + v2, v1 - v2, v3 + v4, v3 - v4
    i0, i1 = v0 * 4.0, (v5 - d) * 4.0 - q * 2.0
    new = [i0, i1, v0 * -5.0 - s * 4.0 - r, d + q * 2.0 - v5 * 5.0, v0 + s + r, v5]
    return *(before + one for before, one in zip(old, new, strict=False)), *new[len(old) :]


def _output4(m0: Vec, m1: Vec, m2: Vec, m3: Vec, m4: Vec, m5: Vec) -> tuple[Vec, ...]:
    """A' m for 4 outputs."""
    s, d, r, q = m1 + m2, m1 - m2, m3 + m4, m3 - m4
    return m0 + s + r, d + q * 2.0, s + r * 4.0, d + q * 8.0 + m5


def _output2(m0: Vec, m1: Vec, m2: Vec, m3: Vec, m4: Vec, m5: Vec) -> tuple[Vec, ...]:
    """A' m for 2 outputs."""
    return m0 + (m1 + m2) + (m3 + m4), (m1 - m2) + (m3 - m4) * 2.0 + m5


def _d_output4(g0: Vec, g1: Vec, g2: Vec, g3: Vec) -> tuple[Vec, ...]:
    """A g for 4 outputs."""
    even, odd, even4, odd2 = g0 + g2, g1 + g3, g0 + g2 * 4.0, g1 * 2.0 + g3 * 8.0
    return g0, even + odd, even - odd, even4 + odd2, even4 - odd2, g3


def _d_output2(g0: Vec, g1: Vec) -> tuple[Vec, ...]:
    """A g for 2 outputs."""
    return g0, g0 + g1, g0 - g1, g0 + g1 * 2.0, g0 - g1 * 2.0, g1


class Transforms(NamedTuple):
    """The kernels for one size of receptive fields.

    Attributes:
        input: `(image, between, channels, across, v)`: B' d B of 6 rows of an image.
        output: `(m, between, channels, across, image)`: A' m A as 4 or 2 rows of an image.
        d_output: `(image, between, channels, across, m)`: A g A', the derivative of `output`.
        d_input: `(v, between, channels, across, image)`: the derivative of `input`, added to the rows that tiles share.
    """

    input: Kernel
    output: Kernel
    d_output: Kernel
    d_input: Kernel


@cache
def make_transforms(taps: int) -> Transforms:
    """The transforms for receptive fields of `taps` by `taps`: 3 or 5."""
    step = outputs_per_tile(taps)
    output, d_output = (_output4, _d_output4) if step == 4 else (_output2, _d_output2)
    return Transforms(
        _make_to_tiles("input", SIDE, step, _input),
        _make_output(step, output),
        _make_to_tiles("d_output", step, step, d_output),
        _make_d_input(step),
    )


def _make_to_tiles(name: str, lines: int, step: int, formula: Callable[..., Sequence[Vec]]) -> Kernel:
    """From `lines` rows of an image to the 36 positions of its tiles: along columns, then along rows."""
    along = _make_axis(f"winograd_{name}_axis", formula, lines, SIDE)

    @kernel(name=f"winograd_{name}")
    def transform(image: Matrix, between: Ptr, channels: Int, across: Int, tiles: Matrix) -> None:
        row = image.row_stride
        along(1, row // LANES, image.ptr, row, 0, between, row, 0)
        with loop(SIDE) as i:
            pixels, positions = between + row * i, tiles.row(i * SIDE)
            along(across, channels // LANES, pixels, channels, channels * step, positions, tiles.row_stride, channels)

    return transform


def _make_d_input(step: int) -> Kernel:
    shared = SIDE - step
    along = _make_axis("winograd_d_input_axis", _d_input, SIDE, SIDE, shared)

    @kernel(name="winograd_d_input")
    def d_transform_input(v: Matrix, between: Matrix, channels: Int, across: Int, image: Ptr) -> None:
        row = between.row_stride
        with loop(SIDE) as i:
            pixels, positions = between.row(i), v.row(i * SIDE)
            zero_vectors(pixels, channels * shared // LANES)
            along(across, channels // LANES, positions, v.row_stride, channels, pixels, channels, channels * step)
        along(1, row // LANES, between.ptr, row, 0, image, row, 0)

    return d_transform_input


def _make_output(step: int, formula: Callable[..., Sequence[Vec]]) -> Kernel:
    along = _make_axis("winograd_output_axis", formula, SIDE, step)

    @kernel(name="winograd_output")
    def transform_output(m: Matrix, between: Ptr, channels: Int, across: Int, image: Matrix) -> None:
        row = image.row_stride
        with loop(SIDE) as i:
            pixels, positions = between + row * i, m.row(i * SIDE)
            along(across, channels // LANES, positions, m.row_stride, channels, pixels, channels, channels * step)
        along(1, row // LANES, between, row, 0, image.ptr, row, 0)

    return transform_output


def _make_axis(name: str, formula: Callable[..., Sequence[Vec]], inputs: int, outputs: int, shared: int = 0) -> Kernel:
    """A transform along one axis of many tiles, one after the other.

    The inputs of a tile are `source_step` numbers apart, and those of the next tile start `source_next` further; the
    same holds for outputs. The formula also takes the present values of the first `shared` outputs.
    """

    @kernel(name=name)
    def axis(
        tiles: Int,
        vectors: Int,
        source: Ptr,
        source_step: Int,
        source_next: Int,
        target: Ptr,
        target_step: Int,
        target_next: Int,
    ) -> None:
        with loop(tiles) as i, loop(vectors) as n:
            read = [source + (source_next * i + n * LANES + source_step * k) for k in range(inputs)]
            written = [target + (target_next * i + n * LANES + target_step * k) for k in range(outputs)]
            results = formula(*map(load, [*read, *written[:shared]]))
            for address, result in zip(written, results, strict=True):
                store(address, result)

    return axis
