"""The kernel that compares arrays."""

from verydeep.kernels.ir._control import Variable, loop, when
from verydeep.kernels.ir._kernel import kernel
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._values import Int, IntPtr, Ptr
from verydeep.kernels.ir._vector import Vec, load, load_lanes, store_number, where


@kernel
def count_differences(table: IntPtr, pairs: Int, differences: Ptr) -> None:
    """Count unequal numbers in pairs of arrays; the table has two addresses and a length for each pair."""
    total = Variable(Vec.zeros())
    with loop(pairs) as i:
        row = table + i * 3
        a, b, numbers = Ptr(row[0].handle), Ptr(row[1].handle), row[2]
        vectors = numbers // LANES
        done = vectors * LANES
        with loop(vectors) as n:
            total.value = total.value + where(load(a + n * LANES) == load(b + n * LANES), 0.0, 1.0)
        rest = numbers - done
        with when(rest != 0):
            total.value = total.value + where(load_lanes(a + done, rest) == load_lanes(b + done, rest), 0.0, 1.0)
    store_number(differences, total.value.sum_lanes())
