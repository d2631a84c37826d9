"""Winograd's minimal filtering F(4x4, 3x3) (Lavin & Gray 2015): 36 products for 16 outputs instead of 144.

`z = A' [(G w G') * (B' x B)] A` for every tile of 6x6 inputs and 4x4 outputs; the sum over channels is one matrix
product for each of the 36 places of a tile. The backward pass is the derivative of the same formula. Channels are
adjacent in memory, so every transform works on whole registers.

Each of the four transforms handles one row of tiles, first along one axis, then along the other, with memory for the
six `rows` between them. A row of an image takes `row` bytes; the places of the tiles are `place` bytes apart.
"""

from collections.abc import Callable

import numpy as np

from verydeep.kernels.ir._ir import LANES, NUMBER, REGISTER, Kernel, N, each
from verydeep.kernels.ir._passes import make_strided_pass, make_zero
from verydeep.kernels.ir._vector import V

PLACES = 36
BIAS = 7  # a number added to this place of a tile is added to all outputs of the tile
_G = np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]]) / 24
FILTER = np.kron(_G, _G).astype(np.float32)  # from the 9 weights of a filter to its 36 places


def _enter(d0: V, d1: V, d2: V, d3: V, d4: V, d5: V) -> tuple[V, ...]:
    """B' d."""
    a, b = d4 - d2 * 4.0, d3 - d1 * 4.0
    c, e = d4 - d2, (d3 - d1) * 2.0
    return d0 * 4.0 - d2 * 5.0 + d4, a + b, a - b, c + e, c - e, d1 * 4.0 - d3 * 5.0 + d5


def _d_enter(v0: V, v1: V, v2: V, v3: V, v4: V, v5: V, old0: V, old1: V) -> tuple[V, ...]:
    """B v, added to the two pixels that the tile shares with the one before."""
    s, d, r, q = v1 + v2, v1 - v2, v3 + v4, v3 - v4
    i0, i1 = v0 * 4.0, (v5 - d) * 4.0 - q * 2.0
    return old0 + i0, old1 + i1, v0 * -5.0 - s * 4.0 - r, d + q * 2.0 - v5 * 5.0, v0 + s + r, v5


def _leave(m0: V, m1: V, m2: V, m3: V, m4: V, m5: V) -> tuple[V, ...]:
    """A' m."""
    s, d, r, q = m1 + m2, m1 - m2, m3 + m4, m3 - m4
    return m0 + s + r, d + q * 2.0, s + r * 4.0, d + q * 8.0 + m5


def _d_leave(g0: V, g1: V, g2: V, g3: V) -> tuple[V, ...]:
    """A g."""
    even, odd, even4, odd2 = g0 + g2, g1 + g3, g0 + g2 * 4.0, g1 * 2.0 + g3 * 8.0
    return g0, even + odd, even - odd, even4 + odd2, even4 - odd2, g3


def make_enter() -> Kernel:
    """`enter(image, row, rows, channels, across, v, place)`: B' d B of the 6 rows from `image` on."""
    return _into_places("enter", 6, _enter)


def _into_places(name: str, lines: int, formula: Callable[..., tuple[V, ...]]) -> Kernel:
    """From `lines` rows of an image to the 36 places of its tiles: the formula along columns, then along rows."""
    apply = make_strided_pass(f"winograd_{name}_axis", lines, 6, formula)

    def emit(image: N, row: N, rows: N, channels: N, across: N, v: N, place: N) -> None:
        apply(1, row // REGISTER, *_from(image, row, lines), *_from(rows, row, 6), *[0] * (lines + 6))
        pixel = channels * NUMBER

        def along(i: N) -> None:
            here, there = _from(rows + i * row, pixel, lines), _from(v + place * i * 6, place, 6)
            apply(across, channels // LANES, *here, *there, *[pixel * 4] * lines, *[pixel] * 6)

        each(_six(image), along)

    return Kernel(f"winograd_{name}", 7, emit)


def make_d_enter() -> Kernel:
    """`d_enter(v, place, rows, row, channels, across, image)`: the derivative of `enter`.

    Its first two rows are accumulated, the other four are written.
    """
    apply, zero = make_strided_pass("winograd_d_enter_axis", 8, 6, _d_enter), make_zero()

    def emit(v: N, place: N, rows: N, row: N, channels: N, across: N, image: N) -> None:
        pixel = channels * NUMBER

        def along(i: N) -> None:
            here, there = _from(v + place * i * 6, place, 6), _from(rows + i * row, pixel, 6)
            zero(there[0], channels * 2 // LANES)
            apply(across, channels // LANES, *here, *there[:2], *there, *[pixel] * 6, *[pixel * 4] * 8)

        each(_six(v), along)
        there = _from(image, row, 6)
        apply(1, row // REGISTER, *_from(rows, row, 6), *there[:2], *there, *[0] * 14)

    return Kernel("winograd_d_enter", 7, emit)


def make_leave() -> Kernel:
    """`leave(m, place, rows, channels, across, image, row)`: A' m A as the 4 rows from `image` on."""
    apply = make_strided_pass("winograd_leave_axis", 6, 4, _leave)

    def emit(m: N, place: N, rows: N, channels: N, across: N, image: N, row: N) -> None:
        pixel = channels * NUMBER

        def along(i: N) -> None:
            here, there = _from(m + place * i * 6, place, 6), _from(rows + i * row, pixel, 4)
            apply(across, channels // LANES, *here, *there, *[pixel] * 6, *[pixel * 4] * 4)

        each(_six(m), along)
        apply(1, row // REGISTER, *_from(rows, row, 6), *_from(image, row, 4), *[0] * 10)

    return Kernel("winograd_leave", 7, emit)


def make_d_leave() -> Kernel:
    """`d_leave(image, row, rows, channels, across, m, place)`: A g A' of the 4 rows from `image` on."""
    return _into_places("d_leave", 4, _d_leave)


def _from(first: N, step: N, count: int) -> list[N]:
    return [first + step * i for i in range(count)]


def _six(some: N) -> N:
    return some - some + 6
