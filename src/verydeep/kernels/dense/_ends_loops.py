"""The loops of the two layers around a stack: the plain input layer and the classifier.

Samples are stored as (sample, input) and logits as (sample, class); the stack between them works on (block, sample).
"""

from verydeep.kernels import _formulas as f
from verydeep.kernels.dense._stack_loops import make_weight_gradient
from verydeep.kernels.ir._ir import LANES, NUMBER, REGISTER, Kernel, N, each
from verydeep.kernels.ir._passes import make_clear, make_pass
from verydeep.kernels.ir._product import make_product
from verydeep.kernels.ir._turn import make_turn, make_turn_all

BLOCK = 128  # inputs at a time: this much of the transposed samples stays in the fastest caches


def make_enter(activation: str) -> Kernel:
    """`enter(weight, bias, x, y, room, inputs, width, vectors, samples)`: the input layer, y = activation(W x + b).

    `room` holds a block of transposed samples. The padding of y is finite.
    """
    value = {"tanh": f.tanh, "relu": f.relu}[activation]
    turn, clear, product = make_turn_all(), make_clear(), make_product(by_row=True)
    formula = make_pass("first_formula", 1, 1, 1, f.plain(value))

    def emit(weight: N, bias: N, x: N, y: N, room: N, inputs: N, width: N, vectors: N, samples: N) -> None:
        row, step = vectors * REGISTER, inputs * NUMBER
        clear(room + samples * NUMBER, row, BLOCK, vectors * LANES - samples)

        def add(block: N, size: N | int) -> None:
            at = block * (BLOCK * NUMBER)
            turn(x + at, step, room, row, samples, size)
            product(weight + at, step, room, row, y, row, width, size, vectors, block)

        whole = inputs // BLOCK
        each(whole, lambda block: add(block, BLOCK))
        add(whole, inputs - whole * BLOCK)
        formula(width, vectors, y, bias, y)

    return Kernel("enter", 9, emit, flush=True)


def make_leave(activation: str) -> Kernel:
    """`leave(x, y, dy, d_weight, d_bias, inputs, width, vectors, samples, add)`: the gradients of the input layer.

    dy becomes dz. The gradient of the weight is written, or added with `add`; that of the bias is always added. The
    number of inputs is a multiple of a register.
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

    `room` holds them as (class, sample).
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
    """`d_classify(weight, d_weight, d_bias, x, dy, dx, room, width, classes, vectors, samples, add)`: the gradients.

    `room` holds dy as (class, sample) and x as (sample, block).
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
