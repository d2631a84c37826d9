"""The loops of the layer after a stack. The stack works on (block, sample); logits are (sample, class)."""

from verydeep.kernels.dense._stack_loops import weight_gradient
from verydeep.kernels.ir._elementwise import make_elementwise
from verydeep.kernels.ir._fill import zero_columns
from verydeep.kernels.ir._kernel import kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._product import make_product
from verydeep.kernels.ir._transpose import transpose, transpose_squares
from verydeep.kernels.ir._values import Int, Matrix, Ptr

_add_bias = make_elementwise("add_bias", lambda z, b: (z + b,), inputs=1, numbers=1, outputs=1)
_sum_rows = make_elementwise("sum_rows", lambda d: (d,), inputs=1, sums=1)


@kernel(flush=True)
def classifier(
    weight: Ptr, bias: Ptr, x: Ptr, y: Ptr, scratch: Ptr, width: Int, classes: Int, vectors: Int, samples: Int
) -> None:
    """The logits y = W x + b; `scratch` holds them as (class, sample)."""
    padded_samples = vectors * LANES
    z = Matrix(scratch, padded_samples)
    make_product()(Matrix(weight, width), Matrix(x, padded_samples), z, classes, width, vectors, 0)
    _add_bias(classes, vectors, scratch, bias, scratch)
    transpose(z, Matrix(y, classes), classes, samples)


@kernel(flush=True)
def d_classifier(
    weight: Ptr,
    d_weight: Ptr,
    d_bias: Ptr,
    x: Ptr,
    dy: Ptr,
    dx: Ptr,
    scratch: Ptr,
    width: Int,
    classes: Int,
    vectors: Int,
    samples: Int,
    add: Int,
) -> None:
    """The gradients of x, weight and bias; `scratch` holds dy as (class, sample), then x as (sample, block)."""
    padded_samples, wide = vectors * LANES, (width + LANES - 1) // LANES
    dz, x_by_sample = Matrix(scratch, padded_samples), Matrix(scratch + classes * padded_samples, wide * LANES)
    transpose(Matrix(dy, classes), dz, samples, classes)
    zero_columns(dz.submatrix(column=samples), classes, padded_samples - samples)
    _sum_rows(classes, vectors, scratch, d_bias)
    make_product(transposed=True)(Matrix(weight, width), dz, Matrix(dx, padded_samples), width, classes, vectors, 0)
    transpose_squares(Matrix(x, padded_samples), x_by_sample, wide, vectors)
    weight_gradient(dz, x_by_sample.ptr, d_weight, width, classes, samples, add)
