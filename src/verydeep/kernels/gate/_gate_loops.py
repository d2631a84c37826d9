"""The loops of the highway operation: everything that follows the affine maps, in one pass over memory.

The backward pass recomputes the activations from z, which is cheaper than keeping them.
"""

from collections.abc import Callable
from functools import cache

from verydeep.kernels import _formulas as f
from verydeep.kernels.ir._control import when
from verydeep.kernels.ir._elementwise import make_strided_elementwise
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._values import Int, Matrix, Ptr
from verydeep.kernels.ir._vector import Vec

_Both = Callable[[Vec, Vec], tuple[Vec, Vec]]
_Derivative = Callable[[Vec, Vec], Vec]


@cache
def make_gate(affine_maps: int, activation: str) -> Kernel:
    """`gate(rows, vectors, x, *z, y)`: y from x and the pre-activations z."""
    both = _tanh_and_sigmoid if activation == "tanh" else f.relu_and_sigmoid
    formula = (_coupled if affine_maps == 2 else _independent)(both)
    return make_strided_elementwise("gate", formula, inputs=1 + affine_maps, outputs=1)


@cache
def make_d_gate(affine_maps: int, activation: str) -> Kernel:
    """`d_gate(rows, vectors, dy, x, *z, dx, *dz)`: its gradients."""
    both, derivative = (_tanh_and_sigmoid, f.d_tanh) if activation == "tanh" else (f.relu_and_sigmoid, f.d_relu)
    formula = (_d_coupled if affine_maps == 2 else _d_independent)(both, derivative)
    return make_strided_elementwise("d_gate", formula, inputs=2 + affine_maps, outputs=1 + affine_maps)


@cache
def make_gate_forward(affine_maps: int, activation: str) -> Kernel:
    """The forward pass: y from z, which is `(row, map, block)`, and x; x and y are `(row, block)`."""
    gate = make_gate(affine_maps, activation)

    @kernel
    def gate_forward(z: Ptr, x: Ptr, y: Ptr, rows: Int, blocks: Int) -> None:
        def from_column(column: Int | int, vectors: Int | int) -> None:
            zs = [Matrix(z + (blocks * i + column), blocks * affine_maps) for i in range(affine_maps)]
            gate(rows, vectors, Matrix(x + column, blocks), *zs, Matrix(y + column, blocks))

        _whole_row(blocks, from_column)

    return gate_forward


@cache
def make_gate_backward(affine_maps: int, activation: str) -> Kernel:
    """The backward pass of the paper's appendix, through the activations."""
    d_gate = make_d_gate(affine_maps, activation)

    @kernel
    def gate_backward(dy: Ptr, z: Ptr, x: Ptr, dz: Ptr, dx: Ptr, rows: Int, blocks: Int) -> None:
        def from_column(column: Int | int, vectors: Int | int) -> None:
            zs, dzs = (
                [Matrix(start + (blocks * i + column), blocks * affine_maps) for i in range(affine_maps)]
                for start in (z, dz)
            )
            own_dy, own_x, own_dx = (Matrix(start + column, blocks) for start in (dy, x, dx))
            d_gate(rows, vectors, own_dy, own_x, *zs, own_dx, *dzs)

        _whole_row(blocks, from_column)

    return gate_backward


def _whole_row(blocks: Int, from_column: Callable[[Int | int, Int | int], None]) -> None:
    """Work on all registers of a row; a last register that is not full overlaps the one before."""
    vectors = blocks // LANES
    from_column(0, vectors)
    with when(vectors * LANES < blocks):
        from_column(blocks - LANES, 1)


def _tanh_and_sigmoid(z: Vec, zt: Vec) -> tuple[Vec, Vec]:
    """Both functions with a division each, so that a NaN of one does not spread to the other."""
    return f.tanh(z), f.sigmoid(zt)


def _coupled(both: _Both) -> Callable[..., tuple[Vec, ...]]:
    def formula(x: Vec, zh: Vec, zt: Vec) -> tuple[Vec, ...]:
        h, t = both(zh, zt)
        return (f.lerp(x, h, t),)

    return formula


def _independent(both: _Both) -> Callable[..., tuple[Vec, ...]]:
    def formula(x: Vec, zh: Vec, zt: Vec, zc: Vec) -> tuple[Vec, ...]:
        h, t = both(zh, zt)
        return (h * t + x * f.sigmoid(zc),)

    return formula


def _d_coupled(both: _Both, derivative: _Derivative) -> Callable[..., tuple[Vec, ...]]:
    def formula(dy: Vec, x: Vec, zh: Vec, zt: Vec) -> tuple[Vec, ...]:
        h, t = both(zh, zt)
        carry = 1.0 - t
        return carry * dy, derivative(h, t * dy), (h - x) * dy * (t * carry)

    return formula


def _d_independent(both: _Both, derivative: _Derivative) -> Callable[..., tuple[Vec, ...]]:
    def formula(dy: Vec, x: Vec, zh: Vec, zt: Vec, zc: Vec) -> tuple[Vec, ...]:
        (h, t), c = both(zh, zt), f.sigmoid(zc)
        return c * dy, derivative(h, t * dy), h * dy * (t * (1.0 - t)), x * dy * (c * (1.0 - c))

    return formula
