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
    logits(weight, bias, x, scratch, width, classes, vectors)
    transpose(Matrix(scratch, vectors * LANES), Matrix(y, classes), classes, samples)


def logits(weight: Ptr, bias: Ptr, x: Ptr, z: Ptr, width: Int, classes: Int, vectors: Int) -> None:
    """The logits as (class, sample)."""
    padded_samples = vectors * LANES
    z_matrix = Matrix(z, padded_samples)
    make_product()(Matrix(weight, width), Matrix(x, padded_samples), z_matrix, classes, width, vectors, 0)
    _add_bias(classes, vectors, z, bias, z)


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
    padded_samples = vectors * LANES
    dz = Matrix(scratch, padded_samples)
    transpose(Matrix(dy, classes), dz, samples, classes)
    zero_columns(dz.submatrix(column=samples), classes, padded_samples - samples)
    free = scratch + classes * padded_samples
    d_logits(weight, d_weight, d_bias, x, dx, scratch, free, width, classes, vectors, samples, add)


def d_logits(
    weight: Ptr,
    d_weight: Ptr,
    d_bias: Ptr,
    x: Ptr,
    dx: Ptr,
    dz: Ptr,
    x_by_sample: Ptr,
    width: Int,
    classes: Int,
    vectors: Int,
    samples: Int,
    add: Int,
) -> None:
    """The gradients of x, weight and bias from those of the logits, (class, sample), with zeros for padding.

    `x_by_sample` receives x as (sample, block).
    """
    padded_samples, wide = vectors * LANES, (width + LANES - 1) // LANES
    z = Matrix(dz, padded_samples)
    _sum_rows(classes, vectors, dz, d_bias)
    make_product(transposed=True)(Matrix(weight, width), z, Matrix(dx, padded_samples), width, classes, vectors, 0)
    transpose_squares(Matrix(x, padded_samples), Matrix(x_by_sample, wide * LANES), wide, vectors)
    weight_gradient(z, x_by_sample, d_weight, width, classes, samples, add)
