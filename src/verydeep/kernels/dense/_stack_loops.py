"""The loops of stacks of fully connected layers: a chunk of samples through all layers, and back.

A matrix is (block, sample), its rows padded to whole vector registers. So weights are read as they are stored, and
every formula works on full registers whatever the width. The memory of a layer is x, then z, which the product writes
and the formula turns into h, t and an independent c in place. The z of a plain layer is the x of the next one.

`maps` is 1 for plain layers, 2 for highway layers and 3 for highway layers with an independent carry gate.
"""

from collections.abc import Sequence
from typing import NamedTuple

from verydeep.kernels import _formulas as f
from verydeep.kernels.ir._ir import (
    LANES,
    NUMBER,
    REGISTER,
    Kernel,
    N,
    Value,
    each,
    load,
    load_index,
    repeat,
    store,
)
from verydeep.kernels.ir._passes import make_clear, make_pass
from verydeep.kernels.ir._product import make_product
from verydeep.kernels.ir._turn import make_turn


class Passes(NamedTuple):
    """The formulas of one kind of layer, applied to matrices."""

    forward: Kernel
    backward: Kernel


def _passes(maps: int, activation: str) -> Passes:
    value, both, derivative = {
        "tanh": (f.tanh, f.tanh_and_sigmoid, f.d_tanh),
        "relu": (f.relu, f.relu_and_sigmoid, f.d_relu),
    }[activation]
    if maps == 1:
        forward, backward = f.plain(value), f.plain_backward(derivative)
        return Passes(make_pass("formula", 1, 1, 1, forward), make_pass("d_formula", 2, 0, 1, backward))
    kind, d_kind = (f.coupled, f.coupled_backward) if maps == 2 else (f.independent, f.independent_backward)
    return Passes(
        make_pass("formula", 1 + maps, maps, 1 + maps, kind(both)),
        make_pass("d_formula", 2 + maps, 0, 1 + maps, d_kind(derivative)),
    )


def make_forward(maps: int, activation: str) -> Kernel:
    """`forward(weight, bias, layers, count, x, stride, width, vectors)`: through the `count` layers listed in `layers`.

    x is the address of the memory of the first layer; that of the next layer is `stride` bytes further. With a stride
    of 0 nothing is kept: the output of every layer replaces its input.
    """
    product, formula = make_product(by_row=True), _passes(maps, activation).forward

    def emit(weight: N, bias: N, layers: N, count: N, x: N, stride: N, width: N, vectors: N) -> None:
        row = vectors * REGISTER
        matrix = width * row

        def layer(n: N, values: list[Value]) -> Sequence[Value]:
            x = N(n.builder, values[0])
            number, y = load_index(layers + n * 8), x + stride
            w, b = weight + number * maps * width * width * NUMBER, bias + number * maps * width * NUMBER
            z = [x + matrix * (1 + i) for i in range(maps)]
            product(w, width * NUMBER, x, row, z[0], row, width * maps, width, vectors, 0)
            biases = [b + width * NUMBER * i for i in range(maps)]
            if maps == 1:
                formula(width, vectors, *z, *biases, y)
            else:
                formula(width, vectors, x, *z, *biases, *z, y)
            return [y.value]

        repeat(count, [x.value], layer)

    return Kernel("forward", 8, emit, flush=True)


def make_backward(maps: int, activation: str) -> Kernel:
    """`backward(weight, d_weight, d_bias, layers, count, x, stride, scratch, width, vectors, samples, add)`.

    Back through layers whose memory, from x on, the forward pass has filled. `scratch` begins with dy, and finally with
    dx. The gradients of weights are written, or added with `add`; those of biases are always added.
    """
    transposed, formula = make_product(by_row=False), _passes(maps, activation).backward
    gradient, turn = make_weight_gradient(), make_turn()

    def emit(
        weight: N,
        d_weight: N,
        d_bias: N,
        layers: N,
        count: N,
        x: N,
        stride: N,
        scratch: N,
        width: N,
        vectors: N,
        samples: N,
        add: N,
    ) -> None:
        row = vectors * REGISTER
        matrix, wide = width * row, (width + LANES - 1) // LANES
        d, dz = scratch, [scratch + matrix * (1 + i) for i in range(maps)]
        samples_rows = scratch + matrix * (1 + maps)  # x as (sample, block)

        def layer(n: N) -> None:
            place = count - n - 1
            number, here = load_index(layers + place * 8), x + place * stride
            w, dw = (base + number * maps * width * width * NUMBER for base in (weight, d_weight))
            db = [d_bias + (number * maps + i) * width * NUMBER for i in range(maps)]
            states = [here + matrix * (1 + i) for i in range(maps)]
            if maps == 1:
                formula(width, vectors, d, *states, *dz, *db)
            else:
                formula(width, vectors, d, here, *states, d, *dz, *db)
            transposed(w, width * NUMBER, dz[0], row, d, row, width, width * maps, vectors, int(maps > 1))
            turn(here, row, samples_rows, wide * REGISTER, wide, vectors)
            gradient(dz[0], row, samples_rows, dw, width, width * maps, samples, add)

        each(count, layer)

    return Kernel("backward", 12, emit, flush=True)


def make_weight_gradient() -> Kernel:
    """`gradient(dz, dz_step, rows, d_weight, width, m, samples, add)`: dz times x, without the padding of samples.

    The rows of d_weight have no padding, so the last register of each row reaches into the next one. That row is
    written later or, with `add`, receives zeros; what follows the last row is restored.
    """
    product, clear = make_product(by_row=True), make_clear()

    def emit(dz: N, dz_step: N, rows: N, d_weight: N, width: N, m: N, samples: N, add: N) -> None:
        builder, wide = dz.builder, (width + LANES - 1) // LANES
        step, end = wide * REGISTER, d_weight + m * width * NUMBER
        behind = load(end)
        with builder.if_then(builder.not_(add == 0)):
            clear(rows + width * NUMBER, step, samples, wide * LANES - width)
        product(dz, dz_step, rows, step, d_weight, width * NUMBER, m, samples, wide, add)
        store(behind, end)

    return Kernel("weight_gradient", 8, emit)
