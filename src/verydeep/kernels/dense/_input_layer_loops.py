"""The loops of the plain layer before a stack. Samples are (sample, input); the stack works on (block, sample)."""

from functools import cache

from verydeep.kernels import _formulas as f
from verydeep.kernels.ir._control import loop
from verydeep.kernels.ir._elementwise import make_elementwise
from verydeep.kernels.ir._fill import zero_columns
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._product import make_product
from verydeep.kernels.ir._transpose import transpose
from verydeep.kernels.ir._values import Int, Matrix, Ptr

BLOCK = 128  # inputs at a time: this much of the transposed samples stays in the fastest caches


@cache
def make_input_layer(activation: str) -> Kernel:
    """The forward pass, y = activation(W x + b).

    `scratch` holds a block of transposed samples. The padding of y is finite.
    """
    value = {"tanh": f.tanh, "relu": f.relu}[activation]
    formula = make_elementwise("input_formula", f.plain(value), inputs=1, numbers=1, outputs=1)
    product = make_product()

    @kernel(flush=True)
    def input_layer(
        weight: Ptr,
        bias: Ptr,
        x: Ptr,
        y: Ptr,
        scratch: Ptr,
        inputs: Int,
        width: Int,
        vectors: Int,
        samples: Int,
    ) -> None:
        padded_samples = vectors * LANES
        x_by_input = Matrix(scratch, padded_samples)
        zero_columns(x_by_input.submatrix(column=samples), BLOCK, padded_samples - samples)

        def add_block(number: Int, size: Int | int) -> None:
            x_block, w_block = (Matrix(start + number * BLOCK, inputs) for start in (x, weight))
            transpose(x_block, x_by_input, samples, size)
            product(w_block, x_by_input, Matrix(y, padded_samples), width, size, vectors, number)

        whole = inputs // BLOCK
        with loop(whole) as number:
            add_block(number, BLOCK)
        add_block(whole, inputs - whole * BLOCK)
        formula(width, vectors, y, bias, y)

    return input_layer


@cache
def make_d_input_layer(activation: str) -> Kernel:
    """The backward pass: the gradients of weight and bias; dy becomes dz.

    The gradient of the weight is written, or added where `add` is not 0; that of the bias is always added. The number
    of inputs is a multiple of a register.
    """
    derivative = {"tanh": f.d_tanh, "relu": f.d_relu}[activation]
    formula = make_elementwise("d_input_formula", f.plain_backward(derivative), inputs=2, outputs=1, sums=1)
    product = make_product()

    @kernel(flush=True)
    def d_input_layer(
        x: Ptr,
        y: Ptr,
        dy: Ptr,
        d_weight: Ptr,
        d_bias: Ptr,
        inputs: Int,
        width: Int,
        vectors: Int,
        samples: Int,
        add: Int,
    ) -> None:
        formula(width, vectors, dy, y, dy, d_bias)
        dz, samples_by_input = Matrix(dy, vectors * LANES), Matrix(x, inputs)
        product(dz, samples_by_input, Matrix(d_weight, inputs), width, samples, inputs // LANES, add)

    return d_input_layer
