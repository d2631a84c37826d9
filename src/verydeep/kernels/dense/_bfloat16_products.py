"""The products of a layer with numbers rounded to bfloat16 and sums in float32.

Matrices are float32, as for the products that they replace; `scratch` holds their rounded pairs. Rows that a product
reads one after another are an odd number of registers apart: at distances of large powers of two, the fastest cache
could hold few of them.
"""

from verydeep.kernels.ir._fill import zero_vectors
from verydeep.kernels.ir._kernel import kernel
from verydeep.kernels.ir._pairs import pair_columns, pair_rows
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._product import make_product
from verydeep.kernels.ir._transpose import transpose_squares
from verydeep.kernels.ir._values import Int, Matrix, Ptr
from verydeep.kernels.ir._vector import preserved


def forward_scratch(maps: int, width: int, padded_samples: int, lanes: int) -> int:
    """Numbers of scratch memory that the forward pass of a layer needs."""
    return maps * width * _registers(width, lanes) * lanes + -(-width // 2) * (padded_samples + lanes)


def backward_scratch(maps: int, width: int, padded_samples: int, lanes: int) -> int:
    """Numbers of scratch memory that the backward pass of a layer needs."""
    rows, pairs = maps * width, _registers(padded_samples, lanes) * lanes
    x_gradient = -(-rows // 2) * (width + padded_samples + lanes)
    return max(x_gradient, (rows + 2 * -(-width // lanes) * lanes + lanes) * pairs)


def _registers(columns: int, lanes: int) -> int:
    """The registers that hold a row of pairs."""
    return -(-columns // (2 * lanes))


@kernel
def bfloat16_product(w: Matrix, x: Matrix, z: Matrix, rows: Int, width: Int, vectors: Int, scratch: Ptr) -> None:
    """The product z = w x."""
    stride, pairs = _stride(width), (width + 1) // 2
    w_pairs, x_pairs = Matrix(scratch, stride), Matrix(scratch + rows * stride, _odd(vectors) * LANES)
    pair_columns(w, w_pairs, rows, width)
    pair_rows(x, x_pairs, width, vectors * LANES)
    make_product(pairs=True)(w_pairs, x_pairs, z, rows, pairs, vectors, 0)


@kernel
def bfloat16_product_transposed(
    w: Matrix, dz: Matrix, dx: Matrix, width: Int, rows: Int, vectors: Int, add: Int, scratch: Ptr
) -> None:
    """The product dx = wT dz, or dx += wT dz where `add` is not 0; w has `rows` rows."""
    pairs = (rows + 1) // 2
    w_pairs, dz_pairs = Matrix(scratch, width), Matrix(scratch + pairs * width, _odd(vectors) * LANES)
    pair_rows(w, w_pairs, rows, width)
    pair_rows(dz, dz_pairs, rows, vectors * LANES)
    make_product(transposed=True, pairs=True)(w_pairs, dz_pairs, dx, width, pairs, vectors, add)


@kernel
def bfloat16_weight_gradient(
    dz: Matrix, x: Matrix, d_weight: Ptr, width: Int, rows: Int, samples: Int, add: Int, scratch: Ptr
) -> None:
    """The product of dz and the transpose of x; as in `weight_gradient`, rows of d_weight have no padding.

    Of an odd number of samples, the last pair includes one of the padding, whose dz is 0.
    """
    wide, stride = (width + LANES - 1) // LANES, _stride(samples)
    x_pairs = Matrix(scratch, stride)
    x_by_sample = Matrix(scratch + wide * LANES * stride, _odd(wide) * LANES)
    dz_pairs = Matrix(x_by_sample.row(stride), stride)
    pair_columns(x, x_pairs, width, samples)
    zero_vectors(x_pairs.row(width), (wide * LANES - width) * stride // LANES)
    transpose_squares(x_pairs, x_by_sample, wide, stride // LANES)
    pair_columns(dz, dz_pairs, rows, samples)
    with preserved(d_weight + rows * width):
        product = make_product(pairs=True)
        product(dz_pairs, x_by_sample, Matrix(d_weight, width), rows, (samples + 1) // 2, wide, add)


def _stride(columns: Int) -> Int:
    """The distance of rows of pairs, in whole registers."""
    return (columns + 2 * LANES - 1) // (2 * LANES) * LANES


def _odd(registers: Int) -> Int:
    """The next odd number."""
    return registers // 2 * 2 + 1
