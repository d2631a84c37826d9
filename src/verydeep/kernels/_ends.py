"""The loops of the layers around a stack: a plain first one, and the classifier.

Samples lie in memory as (sample, input) and logits as (sample, class); the stack between works on (block, sample).
"""

from collections.abc import Sequence

from verydeep.kernels import _formulas as f
from verydeep.kernels._blocks import make_clear, make_pass, make_product, make_turn, make_turn_all
from verydeep.kernels._ir import LANES, NUMBER, REGISTER, Kernel, N, Value, repeat
from verydeep.kernels._stack import make_weight_gradient

BLOCK = 128  # inputs at a time: so much of the turned samples stays in the fastest caches


def make_enter(activation: str) -> Kernel:
    """`enter(weight, bias, x, y, room, inputs, width, vectors, samples)`: y = activation(W x + b).

    The room takes a block of turned samples. Padding of y is finite.
    """
    value = {"tanh": f.tanh, "relu": f.relu}[activation]
    turn, clear, product = make_turn_all(), make_clear(), make_product(by_row=True)
    formula = make_pass("first_formula", 1, 1, 1, f.plain(value))

    def emit(weight: N, bias: N, x: N, y: N, room: N, inputs: N, width: N, vectors: N, samples: N) -> None:
        row, step = vectors * REGISTER, inputs * NUMBER
        clear(room + samples * NUMBER, row, BLOCK, vectors * LANES - samples)

        def add(block: N, size: N | int) -> Sequence[Value]:
            at = block * (BLOCK * NUMBER)
            turn(x + at, step, room, row, samples, size)
            product(weight + at, step, room, row, y, row, width, size, vectors, block)
            return ()

        whole = inputs // BLOCK
        repeat(whole, [], lambda block, _: add(block, BLOCK))
        add(whole, inputs - whole * BLOCK)
        formula(width, vectors, y, bias, y)

    return Kernel("enter", 9, emit, flush=True)


def make_leave(activation: str) -> Kernel:
    """`leave(x, y, dy, d_weight, d_bias, inputs, width, vectors, samples, add)`: the first layer's derivatives.

    dy becomes dz. Those by weights are written, or added with `add`; those by biases always added. The inputs are whole
    registers.
    """
    derivative = {"tanh": f.d_tanh, "relu": f.d_relu}[activation]
    product = make_product(by_row=True)
    formula = make_pass("d_first_formula", 2, 0, 1, f.plain_backward(derivative))

    def emit(x: N, y: N, dy: N, d_weight: N, d_bias: N, inputs: N, width: N, vectors: N, samples: N, add: N) -> None:
        step = inputs * NUMBER
        formula(width, vectors, dy, y, dy, d_bias)
        product(dy, vectors * REGISTER, x, step, d_weight, step, width, samples, inputs // LANES, add)

    return Kernel("leave", 10, emit, flush=True)


def make_classify() -> Kernel:
    """`classify(weight, bias, x, y, room, width, classes, vectors, samples)`: the logits y = W x + b.

    The room takes them as (class, sample).
    """
    turn, product = make_turn_all(), make_product(by_row=True)
    formula = make_pass("add_bias", 1, 1, 1, lambda z, b: (z + b,))

    def emit(weight: N, bias: N, x: N, y: N, room: N, width: N, classes: N, vectors: N, samples: N) -> None:
        row = vectors * REGISTER
        product(weight, width * NUMBER, x, row, room, row, classes, width, vectors, 0)
        formula(classes, vectors, room, bias, room)
        turn(room, row, y, classes * NUMBER, classes, samples)

    return Kernel("classify", 9, emit, flush=True)


def make_d_classify() -> Kernel:
    """`d_classify(weight, d_weight, d_bias, x, dy, dx, room, width, classes, vectors, samples, add)`: its derivatives.

    The room takes dy as (class, sample), and x as (sample, block).
    """
    turn_all, turn, clear = make_turn_all(), make_turn(), make_clear()
    transposed, gradient = make_product(by_row=False), make_weight_gradient()
    sums = make_pass("sums", 1, 0, 0, lambda d: (d,))

    def emit(
        weight: N,
        d_weight: N,
        d_bias: N,
        x: N,
        dy: N,
        dx: N,
        room: N,
        width: N,
        classes: N,
        vectors: N,
        samples: N,
        add: N,
    ) -> None:
        row, wide = vectors * REGISTER, (width + LANES - 1) // LANES
        rows = room + classes * row
        turn_all(dy, classes * NUMBER, room, row, samples, classes)
        clear(room + samples * NUMBER, row, classes, vectors * LANES - samples)
        sums(classes, vectors, room, d_bias)
        transposed(weight, width * NUMBER, room, row, dx, row, width, classes, vectors, 0)
        turn(x, row, rows, wide * REGISTER, wide, vectors)
        gradient(room, row, rows, d_weight, width, classes, samples, add)

    return Kernel("d_classify", 12, emit, flush=True)
