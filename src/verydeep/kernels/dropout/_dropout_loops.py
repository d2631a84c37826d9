"""The loop of dropout. Nothing is kept for the backward pass: random numbers are a function of a key and a position."""

from verydeep.kernels.ir._control import loop, when
from verydeep.kernels.ir._kernel import kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._values import Int, Ptr
from verydeep.kernels.ir._vector import (
    Vec,
    broadcast,
    load,
    load_lanes,
    load_number,
    random,
    store,
    store_lanes,
    where,
)


@kernel(flush=True)
def dropout_numbers(x: Ptr, y: Ptr, constants: Ptr, key: Int, first: Int, numbers: Int) -> None:
    """Set y to x times a factor, or times 0 with some probability: the constants are the probability and the factor.

    `first` is the position of the first number, for the random numbers.
    """
    probability, factor = (broadcast(load_number(constants + n)) for n in range(2))

    def dropped(values: Vec, position: Int) -> Vec:
        return values * where(random(key, first + position) < probability, 0.0, factor)

    vectors = numbers // LANES
    done = vectors * LANES
    with loop(vectors) as n:
        store(y + n * LANES, dropped(load(x + n * LANES), n * LANES))
    rest = numbers - done
    with when(rest != 0):
        store_lanes(y + done, dropped(load_lanes(x + done, rest), done), rest)
