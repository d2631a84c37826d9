"""The loops behind stacks of fully connected layers: a chunk of samples through all layers, and back.

Samples lie side by side: a matrix is (block, sample), its rows padded to whole vector registers. So weights are read as
they are stored, and every formula works on full registers whatever the width. A layer's memory is x, then what the
product writes: z, which becomes h, t and an independent c in place. A plain layer's z is the next layer's x.

`maps` is 1 for plain layers, 2 for highway layers and 3 for those with an independent carry gate.
"""

from collections.abc import Sequence
from typing import NamedTuple

from verydeep.kernels import _formulas as f
from verydeep.kernels._blocks import make_pass, make_product, make_turn
from verydeep.kernels._ir import (
    LANES,
    NUMBER,
    REGISTER,
    Kernel,
    N,
    Value,
    load,
    load_index,
    load_number,
    repeat,
    store,
    store_number,
)


class Passes(NamedTuple):
    """The formulas of one kind of layer, over matrices."""

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
    """`forward(weight, bias, layers, count, x, stride, width, vectors)`: through so many layers, listed in `layers`.

    x is the address of the first layer's memory; those of the next are `stride` bytes apart. With a stride of 0 nothing
    is kept: every layer's output takes the place of its input.
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

    Back through layers whose memories, from x on, the forward pass has filled. `scratch` begins with dy and in the end
    with dx. Derivatives by weights are written, or added with `add`; those by biases are always added.
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
        padded = samples_rows + vectors * wide * (REGISTER * LANES)  # where d_weight's rows are whole registers

        def layer(n: N, _: list[Value]) -> Sequence[Value]:
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
            gradient(dz[0], row, samples_rows, padded, dw, width, width * maps, samples, add)
            return ()

        repeat(count, [], layer)

    return Kernel("backward", 12, emit, flush=True)


def make_weight_gradient() -> Kernel:
    """`gradient(dz, dz_step, rows, padded, d_weight, width, m, samples, add)`: dz times x, over the real samples."""
    product = make_product(by_row=True)

    def emit(dz: N, dz_step: N, rows: N, padded: N, d_weight: N, width: N, m: N, samples: N, add: N) -> None:
        builder, wide = dz.builder, (width + LANES - 1) // LANES
        step = wide * REGISTER
        with builder.if_else(wide * LANES == width) as (whole, ragged):
            with whole:
                product(dz, dz_step, rows, step, d_weight, step, m, samples, wide, add)
            with ragged:
                product(dz, dz_step, rows, step, padded, step, m, samples, wide, 0)
                _copy_rows(padded, step, d_weight, width, m, add)

    return Kernel("weight_gradient", 9, emit)


def _copy_rows(source: N, step: N, target: N, width: N, rows: N, add: N) -> None:
    """The first `width` numbers of each row, one row after the other: whole registers, then single numbers."""
    builder, whole = source.builder, width // LANES

    def copy(adding: bool) -> None:
        def row(i: N, _: list[Value]) -> Sequence[Value]:
            start, to = source + i * step, target + i * width * NUMBER

            def register(j: N, _: list[Value]) -> Sequence[Value]:
                at, value = to + j * REGISTER, load(start + j * REGISTER)
                store(builder.fadd(load(at), value) if adding else value, at)
                return ()

            def number(j: N, _: list[Value]) -> Sequence[Value]:
                at, value = to + j * NUMBER, load_number(start + j * NUMBER)
                store_number(builder.fadd(load_number(at), value) if adding else value, at)
                return ()

            repeat(whole, [], register)
            start, to = start + whole * REGISTER, to + whole * REGISTER
            repeat(width - whole * LANES, [], number)
            return ()

        repeat(rows, [], row)

    with builder.if_else(add == 0) as (new, more):
        with new:
            copy(False)
        with more:
            copy(True)
