"""Losses of a network's outputs and their derivatives, for matrices (output, sample) padded to whole registers.

Each loss replaces the outputs by the derivatives of `scale` times the sum of the losses, and writes the loss of every
sample and whether it is predicted correctly (0 or 1).
"""

from collections.abc import Callable

from verydeep.kernels import _formulas as f
from verydeep.kernels.ir._control import Variable, loop
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._values import Int, Matrix, Ptr
from verydeep.kernels.ir._vector import Vec, broadcast, load, load_number, store, where


@kernel
def cross_entropy(
    z: Matrix, targets: Matrix, losses: Ptr, correct: Ptr, scale: Ptr, outputs: Int, vectors: Int
) -> None:
    """The cross-entropy of logits z with the class numbers in the only row of targets.

    The terms of the other classes are added up without that of the target, so that small losses and derivatives are
    exact to rounding, too.
    """
    factor = broadcast(load_number(scale))
    with loop(vectors) as n:
        column = n * LANES
        target = load(targets.ptr + column)
        largest, best, number = Variable(load(z.ptr + column)), Variable(Vec.zeros()), Variable(Vec.zeros())
        with loop(outputs) as k:
            logit = load(z.row(k) + column)
            best.value = where(logit > largest.value, number.value, best.value)
            largest.value = f.larger(largest.value, logit)
            number.value = number.value + 1.0
        number.value = Vec.zeros()
        others, of_target = Variable(Vec.zeros()), Variable(Vec.zeros())
        with loop(outputs) as k:
            logit = load(z.row(k) + column)
            e, is_target = f.exp(logit - largest.value), number.value == target
            others.value = others.value + where(is_target, 0.0, e)
            of_target.value = where(is_target, logit, of_target.value)
            number.value = number.value + 1.0
            store(z.row(k) + column, e)
        below = of_target.value - largest.value
        e_target = f.exp(below)
        inverse = factor / (others.value + e_target)
        number.value = Vec.zeros()
        with loop(outputs) as k:
            is_target = number.value == target
            e = load(z.row(k) + column)
            store(z.row(k) + column, where(is_target, -1.0 * others.value, e) * inverse)
            number.value = number.value + 1.0
        rest = where(below == 0.0, others.value, others.value + (e_target - 1.0))
        store(losses + column, f.log1p(rest) - below)
        store(correct + column, where(best.value == target, where(below == below, 1.0, 0.0), 0.0))  # noqa: PLR0124


Derivative = Callable[[Vec, Vec], tuple[Vec, Vec]]
"""From an output and its target to the loss and its derivative."""


def make_elementwise_loss(name: str, derivative: Derivative) -> Kernel:
    """A loss that is the mean over the outputs of a function of each output and its target.

    `scale` holds the factor of the derivatives, then one divided by the number of outputs. A sample counts as correct
    to the share of outputs that are positive exactly where their targets are.
    """

    @kernel(name=name)
    def elementwise_loss(
        z: Matrix, targets: Matrix, losses: Ptr, correct: Ptr, scale: Ptr, outputs: Int, vectors: Int
    ) -> None:
        factor, share = broadcast(load_number(scale)), broadcast(load_number(scale + 1))
        with loop(vectors) as n:
            column = n * LANES
            total, right = Variable(Vec.zeros()), Variable(Vec.zeros())
            with loop(outputs) as k:
                output, target = load(z.row(k) + column), load(targets.row(k) + column)
                loss, d = derivative(output, target)
                total.value = total.value + loss
                positive = where(output > 0.0, 1.0, 0.0 * output)
                right.value = right.value + where(positive == target, 1.0, 0.0 * output)
                store(z.row(k) + column, d * (factor * share))
            store(losses + column, total.value * share)
            store(correct + column, right.value * share)

    return elementwise_loss


def _squared(output: Vec, target: Vec) -> tuple[Vec, Vec]:
    error = output - target
    return error * error, 2.0 * error


def _binary_cross_entropy(output: Vec, target: Vec) -> tuple[Vec, Vec]:
    """log(1 + exp(-|z|)) + max(z, 0) - z target, exact to rounding also for large z."""
    size = where(output < 0.0, -1.0 * output, output)
    e = f.exp(-1.0 * size)
    share = 1.0 / (1.0 + e)
    probability = where(output < 0.0, e * share, share)
    return f.log1p(e) + f.relu(output) - output * target, probability - target


LOSSES: dict[str, Kernel] = {
    "cross-entropy": cross_entropy,
    "squared": make_elementwise_loss("squared_error", _squared),
    "binary-cross-entropy": make_elementwise_loss("binary_cross_entropy", _binary_cross_entropy),
}
