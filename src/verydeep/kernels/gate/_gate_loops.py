"""The loops of the highway operation: everything that follows the affine maps, in one pass over memory.

The backward pass recomputes the activations from z, which is cheaper than keeping them.
"""

from collections.abc import Callable

from verydeep.kernels import _formulas as f
from verydeep.kernels.ir._ir import LANES, NUMBER, REGISTER, Kernel, N
from verydeep.kernels.ir._passes import make_strided_pass
from verydeep.kernels.ir._vector import V

_Both = Callable[[V, V], tuple[V, V]]
_Derivative = Callable[[V, V], V]


def gate_pass(maps: int, activation: str) -> Kernel:
    """`pass(rows, vectors, x, *z, y, *steps)`: y from x and the pre-activations z."""
    both = _tanh_and_sigmoid if activation == "tanh" else f.relu_and_sigmoid
    return make_strided_pass("gate", 1 + maps, 1, (_coupled if maps == 2 else _independent)(both))


def d_gate_pass(maps: int, activation: str) -> Kernel:
    """`pass(rows, vectors, dy, x, *z, dx, *dz, *steps)`: its gradients."""
    both, derivative = (_tanh_and_sigmoid, f.d_tanh) if activation == "tanh" else (f.relu_and_sigmoid, f.d_relu)
    return make_strided_pass(
        "d_gate", 2 + maps, 1 + maps, (_d_coupled if maps == 2 else _d_independent)(both, derivative)
    )


def make_gate(maps: int, activation: str) -> Kernel:
    """`forward(z, x, y, rows, blocks)`: z is `(row, map, block)`, x and y are `(row, block)`."""
    apply = gate_pass(maps, activation)

    def emit(z: N, x: N, y: N, rows: N, blocks: N) -> None:
        part = blocks * NUMBER
        steps = [part, *[part * maps] * maps, part]

        def over(at: N, vectors: N | int) -> None:
            apply(rows, vectors, x + at, *(z + part * i + at for i in range(maps)), y + at, *steps)

        _whole_row(blocks, over)

    return Kernel("gate_forward", 5, emit)


def make_d_gate(maps: int, activation: str) -> Kernel:
    """`backward(dy, z, x, dz, dx, rows, blocks)`: the gradients of the paper's appendix, through the activations."""
    apply = d_gate_pass(maps, activation)

    def emit(dy: N, z: N, x: N, dz: N, dx: N, rows: N, blocks: N) -> None:
        part = blocks * NUMBER
        steps = [part, part, *[part * maps] * maps, part, *[part * maps] * maps]

        def over(at: N, vectors: N | int) -> None:
            z_parts, dz_parts = ([first + part * i + at for i in range(maps)] for first in (z, dz))
            apply(rows, vectors, dy + at, x + at, *z_parts, dx + at, *dz_parts, *steps)

        _whole_row(blocks, over)

    return Kernel("gate_backward", 7, emit)


def _whole_row(blocks: N, over: Callable[[N, N | int], None]) -> None:
    """Apply `over` to all registers of a row; a last register that is not full overlaps the one before."""
    builder, vectors = blocks.builder, blocks // LANES
    over(blocks - blocks, vectors)
    with builder.if_then(vectors * LANES < blocks):
        over(blocks * NUMBER - REGISTER, 1)


def _tanh_and_sigmoid(z: V, zt: V) -> tuple[V, V]:
    """Both functions with a division each, so that a NaN of one does not spread to the other."""
    return f.tanh(z), f.sigmoid(zt)


def _coupled(both: _Both) -> Callable[..., tuple[V, ...]]:
    def formula(x: V, zh: V, zt: V) -> tuple[V, ...]:
        h, t = both(zh, zt)
        return (f.lerp(x, h, t),)

    return formula


def _independent(both: _Both) -> Callable[..., tuple[V, ...]]:
    def formula(x: V, zh: V, zt: V, zc: V) -> tuple[V, ...]:
        h, t = both(zh, zt)
        return (h * t + x * f.sigmoid(zc),)

    return formula


def _d_coupled(both: _Both, derivative: _Derivative) -> Callable[..., tuple[V, ...]]:
    def formula(dy: V, x: V, zh: V, zt: V) -> tuple[V, ...]:
        h, t = both(zh, zt)
        carry = 1.0 - t
        return carry * dy, derivative(h, t * dy), (h - x) * dy * (t * carry)

    return formula


def _d_independent(both: _Both, derivative: _Derivative) -> Callable[..., tuple[V, ...]]:
    def formula(dy: V, x: V, zh: V, zt: V, zc: V) -> tuple[V, ...]:
        (h, t), c = both(zh, zt), f.sigmoid(zc)
        return c * dy, derivative(h, t * dy), h * dy * (t * (1.0 - t)), x * dy * (c * (1.0 - c))

    return formula
