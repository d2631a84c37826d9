"""The loops of the highway operation: everything that follows the affine maps, in one pass over memory.

The backward pass recomputes the activations from z, which is cheaper than keeping them.
"""

from collections.abc import Callable
from functools import cache

from verydeep.kernels import _formulas as f
from verydeep.kernels.ir._elementwise import Formula, make_rowwise
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._values import Int, Matrix, Ptr
from verydeep.kernels.ir._vector import Vec

_Both = Callable[[Vec, Vec], tuple[Vec, Vec]]
_Derivative = Callable[[Vec, Vec], Vec]


def gate_formula(affine_maps: int, activation: str) -> Formula:
    """`formula(x, *z)`: y from x and the pre-activations z."""
    both = _tanh_and_sigmoid if activation == "tanh" else f.relu_and_sigmoid
    return (_coupled if affine_maps == 2 else _independent)(both)


def d_gate_formula(affine_maps: int, activation: str) -> Formula:
    """`formula(dy, x, *z)`: the gradients of x and z."""
    both, derivative = (_tanh_and_sigmoid, f.d_tanh) if activation == "tanh" else (f.relu_and_sigmoid, f.d_relu)
    return (_d_coupled if affine_maps == 2 else _d_independent)(both, derivative)


@cache
def make_gate_forward(affine_maps: int, activation: str) -> Kernel:
    """The forward pass: y from z, which is `(row, map, block)`, and x; x and y are `(row, block)`."""
    gate = make_rowwise("gate", gate_formula(affine_maps, activation), inputs=1 + affine_maps, outputs=1)

    @kernel
    def gate_forward(z: Ptr, x: Ptr, y: Ptr, rows: Int, blocks: Int) -> None:
        gate(rows, blocks, Matrix(x, blocks), *map_parts(z, blocks, affine_maps), Matrix(y, blocks))

    return gate_forward


@cache
def make_gate_backward(affine_maps: int, activation: str) -> Kernel:
    """The backward pass of the paper's appendix, through the activations."""
    formula = d_gate_formula(affine_maps, activation)
    d_gate = make_rowwise("d_gate", formula, inputs=2 + affine_maps, outputs=1 + affine_maps)

    @kernel
    def gate_backward(dy: Ptr, z: Ptr, x: Ptr, dz: Ptr, dx: Ptr, rows: Int, blocks: Int) -> None:
        z_parts, dz_parts = (map_parts(start, blocks, affine_maps) for start in (z, dz))
        own_dy, own_x, own_dx = (Matrix(start, blocks) for start in (dy, x, dx))
        d_gate(rows, blocks, own_dy, own_x, *z_parts, own_dx, *dz_parts)

    return gate_backward


def map_parts(z: Ptr, blocks: Int | int, affine_maps: int, row_stride: Int | int | None = None) -> list[Matrix]:
    """The parts of z that belong to each affine map; rows have no gaps unless their distance is given."""
    stride = blocks * affine_maps if row_stride is None else row_stride
    return [Matrix(z + blocks * i, stride) for i in range(affine_maps)]


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
