"""The loops of stacks of fully connected layers: a chunk of samples through all layers, and back.

A matrix is (block, sample), its rows padded to whole vector registers. So weights are read as they are stored, and
every formula works on full registers whatever the width. The memory of a layer is x, then z, which the product writes
and the formula turns into h, t and an independent c in place. The z of a plain layer is the x of the next one.

With `bfloat16`, products round their factors to bfloat16; everything else stays float32.

`affine_maps` is 1 for plain and residual layers, 2 for highway layers and 3 for highway layers with an independent
carry gate. `formula_name` is the activation; that of residual layers begins with "residual-".
"""

from functools import cache

from verydeep.kernels import _formulas as f
from verydeep.kernels.dense._bfloat16_products import (
    bfloat16_product,
    bfloat16_product_transposed,
    bfloat16_weight_gradient,
)
from verydeep.kernels.dense._stack_plan import activation_of, parts_of_layer
from verydeep.kernels.ir._control import loop, when
from verydeep.kernels.ir._elementwise import make_elementwise
from verydeep.kernels.ir._fill import zero_columns
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._product import make_product
from verydeep.kernels.ir._transpose import transpose_squares
from verydeep.kernels.ir._values import Int, IntPtr, Matrix, Ptr
from verydeep.kernels.ir._vector import preserved


@cache
def make_forward(affine_maps: int, formula_name: str, bfloat16: bool) -> Kernel:
    """The forward pass through the `count` layers listed in `layers`.

    Row n of `memory` is the memory of the n-th of them. With a row stride of 0 nothing is kept: the output of every
    layer replaces its input. Only products in bfloat16 need `scratch`.
    """
    product, formula = make_product(), _make_formula(affine_maps, formula_name)
    plain = parts_of_layer(affine_maps, formula_name) == 1

    @kernel(flush=True)
    def forward(
        weight: Ptr,
        bias: Ptr,
        layers: IntPtr,
        count: Int,
        memory: Matrix,
        scratch: Ptr,
        width: Int,
        vectors: Int,
    ) -> None:
        padded_samples = vectors * LANES
        size = width * padded_samples
        with loop(count) as n:
            layer, x, y = layers[n] * affine_maps, memory.row(n), memory.row(n + 1)
            z = [x + size * (1 + i) for i in range(affine_maps)]
            biases = [bias + (layer + i) * width for i in range(affine_maps)]
            w, all_z = Matrix(weight + layer * width * width, width), Matrix(z[0], padded_samples)
            if bfloat16:
                bfloat16_product(w, Matrix(x, padded_samples), all_z, width * affine_maps, width, vectors, scratch)
            else:
                product(w, Matrix(x, padded_samples), all_z, width * affine_maps, width, vectors, 0)
            if plain:
                formula(width, vectors, *z, *biases, y)
            else:
                formula(width, vectors, x, *z, *biases, *z, y)

    return forward


@cache
def make_backward(affine_maps: int, formula_name: str, bfloat16: bool) -> Kernel:
    """The backward pass through layers whose memory the forward pass has filled.

    `scratch` begins with dy, and finally with dx. The gradients of weights are written, or added where `add` is not 0;
    those of biases are always added.
    """
    transposed, formula = make_product(transposed=True), _make_d_formula(affine_maps, formula_name)
    plain = parts_of_layer(affine_maps, formula_name) == 1

    @kernel(flush=True)
    def backward(
        weight: Ptr,
        d_weight: Ptr,
        d_bias: Ptr,
        layers: IntPtr,
        count: Int,
        memory: Matrix,
        scratch: Ptr,
        width: Int,
        vectors: Int,
        samples: Int,
        add: Int,
    ) -> None:
        padded_samples, wide = vectors * LANES, (width + LANES - 1) // LANES
        size = width * padded_samples
        d, dz = scratch, [scratch + size * (1 + i) for i in range(affine_maps)]
        free = scratch + size * (1 + affine_maps)
        with loop(count) as n:
            backwards = count - n - 1
            layer, x = layers[backwards] * affine_maps, memory.row(backwards)
            w, dw = (Matrix(start + layer * width * width, width) for start in (weight, d_weight))
            db = [d_bias + (layer + i) * width for i in range(affine_maps)]
            states = [x + size * (1 + i) for i in range(affine_maps)]
            if plain:
                formula(width, vectors, d, *states, *dz, *db)
            else:
                formula(width, vectors, d, x, *states, d, *dz, *db)
            all_dz, m = Matrix(dz[0], padded_samples), width * affine_maps
            x_matrix, dx = Matrix(x, padded_samples), Matrix(d, padded_samples)
            if bfloat16:
                bfloat16_product_transposed(w, all_dz, dx, width, m, vectors, int(not plain), free)
                bfloat16_weight_gradient(all_dz, x_matrix, dw.ptr, width, m, samples, add, free)
            else:
                transposed(w, all_dz, dx, width, m, vectors, int(not plain))
                transpose_squares(x_matrix, Matrix(free, wide * LANES), wide, vectors)
                weight_gradient(all_dz, free, dw.ptr, width, m, samples, add)

    return backward


@kernel
def weight_gradient(dz: Matrix, x_by_sample: Ptr, d_weight: Ptr, width: Int, m: Int, samples: Int, add: Int) -> None:
    """The product of dz and x, without the padding of samples; x is (sample, block), with rows of whole registers.

    The rows of d_weight have no padding, so the last register of each row reaches into the next one. That row is
    written later or, where `add` is not 0, receives zeros; what follows the last row is preserved.
    """
    wide = (width + LANES - 1) // LANES
    x = Matrix(x_by_sample, wide * LANES)
    with preserved(d_weight + m * width):
        with when(add != 0):
            zero_columns(x.submatrix(column=width), samples, wide * LANES - width)
        make_product()(dz, x, Matrix(d_weight, width), m, samples, wide, add)


def _make_formula(affine_maps: int, formula_name: str) -> Kernel:
    """The formula of one kind of layer, applied to matrices."""
    activation = activation_of(formula_name)
    value, both = {"tanh": (f.tanh, f.tanh_and_sigmoid), "relu": (f.relu, f.relu_and_sigmoid)}[activation]
    if activation != formula_name:
        return make_elementwise("formula", f.residual(value), inputs=2, numbers=1, outputs=2)
    if affine_maps == 1:
        return make_elementwise("formula", f.plain(value), inputs=1, numbers=1, outputs=1)
    formula = (f.coupled if affine_maps == 2 else f.independent)(both)
    return make_elementwise("formula", formula, inputs=1 + affine_maps, numbers=affine_maps, outputs=1 + affine_maps)


def _make_d_formula(affine_maps: int, formula_name: str) -> Kernel:
    """Its backward pass; the sums are the gradients of the biases."""
    activation = activation_of(formula_name)
    derivative = {"tanh": f.d_tanh, "relu": f.d_relu}[activation]
    if activation != formula_name:
        return make_elementwise("d_formula", f.residual_backward(derivative), inputs=3, outputs=2, sums=1)
    if affine_maps == 1:
        return make_elementwise("d_formula", f.plain_backward(derivative), inputs=2, outputs=1, sums=1)
    formula = (f.coupled_backward if affine_maps == 2 else f.independent_backward)(derivative)
    return make_elementwise("d_formula", formula, inputs=2 + affine_maps, outputs=1 + affine_maps, sums=affine_maps)
