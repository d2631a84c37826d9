"""The kernel that compares arrays."""

from verydeep.kernels.ir._control import Variable, loop, when
from verydeep.kernels.ir._kernel import kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._values import Int, IntPtr, Ptr
from verydeep.kernels.ir._vector import Vec, load, load_lanes, store_number, where

EVERY = 8


@kernel
def count_differences(table: IntPtr, pairs: Int, differences: Ptr) -> None:
    """Count unequal numbers in pairs of arrays; the table has two addresses and a length for each pair.

    One register in every EVERY is compared, and the end of each array.
    """
    total = Variable(Vec.zeros())
    with loop(pairs) as i:
        row = table + i * 3
        a, b, numbers = Ptr(row[0].handle), Ptr(row[1].handle), row[2]
        compared = (numbers // LANES + (EVERY - 1)) // EVERY
        with loop(compared) as n:
            register = n * (EVERY * LANES)
            total.value = total.value + where(load(a + register) == load(b + register), 0.0, 1.0)
        done = numbers // LANES * LANES
        rest = numbers - done
        with when(rest != 0):
            total.value = total.value + where(load_lanes(a + done, rest) == load_lanes(b + done, rest), 0.0, 1.0)
    store_number(differences, total.value.sum_lanes())
