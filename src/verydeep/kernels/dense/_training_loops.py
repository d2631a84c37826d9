"""The loops of a training step around those of the stack: its batch, the loss, and the update of the weights."""

from functools import cache

from verydeep.kernels.dense._classifier_loops import d_logits, logits
from verydeep.kernels.dense._losses import LOSSES
from verydeep.kernels.ir._control import loop, when
from verydeep.kernels.ir._elementwise import make_elementwise
from verydeep.kernels.ir._fill import zero_columns
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._transpose import transpose
from verydeep.kernels.ir._values import Int, IntPtr, Matrix, Ptr
from verydeep.kernels.ir._vector import (
    Vec,
    broadcast,
    load,
    load_lanes,
    load_number,
    store,
    store_lanes,
    store_number,
)

_sum_row = make_elementwise("sum_row", lambda value: (value,), inputs=1, sums=1)


@kernel(flush=True)
def gather_rows(
    source: Matrix, order: IntPtr, position: IntPtr, to: Matrix, first: Int, rows: Int, numbers: Int
) -> None:
    """Copy the rows of a batch: row i of `to` is row `order[position + first + i]` of the source."""
    vectors = numbers // LANES
    done = vectors * LANES
    rest = numbers - done
    with loop(rows) as i:
        here, there = source.row(order[position[0] + first + i]), to.row(first + i)
        with loop(vectors) as n:
            store(there + n * LANES, load(here + n * LANES))
        with when(rest != 0):
            store_lanes(there + done, load_lanes(here + done, rest), rest)


@kernel(flush=True)
def next_step(position: IntPtr, samples: Int, step: IntPtr) -> None:
    """Move on to the next batch."""
    position.fetch_add(samples)
    step.fetch_add(1)


@cache
def make_classify_and_back(loss: str) -> Kernel:
    """The classifier and the loss, forward and backward, for a chunk of samples.

    `sums` receives the loss and the number of correct predictions, at the place of this chunk and step. `scratch` holds
    the outputs as (output, sample), the targets likewise, losses, correct predictions, and x as (sample, block).
    """
    compute_loss = LOSSES[loss]

    @kernel(flush=True, name=f"classify_and_back_{loss.replace('-', '_')}")
    def classify_and_back(
        parameters: IntPtr,
        x: Ptr,
        dx: Ptr,
        targets: Matrix,
        sums: Matrix,
        step: IntPtr,
        scale: Ptr,
        scratch: Ptr,
        width: Int,
        outputs: Int,
        vectors: Int,
        samples: Int,
        add: Int,
    ) -> None:
        columns = parameters[4]
        padded_samples = vectors * LANES
        z, t = Matrix(scratch, padded_samples), Matrix(scratch + outputs * padded_samples, padded_samples)
        losses = t.row(columns)
        correct, x_by_sample = losses + padded_samples, losses + 2 * padded_samples
        weight, bias, d_weight, d_bias = (Ptr(parameters[n].handle) for n in range(4))
        logits(weight, bias, x, scratch, width, outputs, vectors)
        transpose(targets, t, samples, columns)
        zero_columns(t.submatrix(column=samples), columns, padded_samples - samples)
        compute_loss(z, t, losses, correct, scale, outputs, vectors)
        for row in (z, Matrix(losses, padded_samples)):
            zero_columns(row.submatrix(column=samples), outputs if row is z else 2, padded_samples - samples)
        to = sums.row(step[0])
        for value, number in ((losses, 0), (correct, 1)):
            store_number(to + number, 0.0)
            _sum_row(1, vectors, value, to + number)
        d_logits(weight, d_weight, d_bias, x, dx, scratch, x_by_sample, width, outputs, vectors, samples, add)

    return classify_and_back


@cache
def make_update(nesterov: bool) -> Kernel:
    """Stochastic gradient descent with momentum and weight decay, as in torch.optim.SGD.

    `rates` has a row of learning rates per step, of which the first is used; `constants` the momentum and the weight
    decay. The momentum's memory begins with zeros.
    """

    def formula(w: Vec, g: Vec, m: Vec, rate: Vec, momentum: Vec, decay: Vec) -> tuple[Vec, Vec]:
        g = g + decay * w
        m = momentum * m + g
        return w - rate * (g + momentum * m if nesterov else m), m

    @kernel(flush=True, name="update_nesterov" if nesterov else "update")
    def update(
        weight: Ptr, gradient: Ptr, momentum: Ptr, rates: Matrix, step: IntPtr, constants: Ptr, numbers: Int
    ) -> None:
        scalars = [broadcast(load_number(at)) for at in (rates.row(step[0]), constants, constants + 1)]
        vectors = numbers // LANES
        done = vectors * LANES
        rest = numbers - done
        with loop(vectors) as n:
            w, g, m = (load(start + n * LANES) for start in (weight, gradient, momentum))
            for start, value in zip((weight, momentum), formula(w, g, m, *scalars), strict=True):
                store(start + n * LANES, value)
        with when(rest != 0):
            w, g, m = (load_lanes(start + done, rest) for start in (weight, gradient, momentum))
            for start, value in zip((weight, momentum), formula(w, g, m, *scalars), strict=True):
                store_lanes(start + done, value, rest)

    return update
