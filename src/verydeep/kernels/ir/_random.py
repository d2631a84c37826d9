"""Random numbers that are a function of a key and a position, so that nothing is stored to get the same ones again.

The position is mixed with both halves of the key, by shifts and factors that Wellons (2018) searched for ("triple32"):
every bit of the input changes every bit of the result with probability 1/2, to a fiftieth of a percent. Positions count
modulo 2**32.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verydeep.kernels.ir._processor import LANES

FRACTION_SHIFT = 9  # what is left of 32 random bits are the 23 bits of a float32's fraction
ONE = 0x3F800000  # the bits of 1.0: with a random fraction, a number from 1 up to 2
_SPREAD = 0x9E3779B1  # the golden ratio, which places neighbours far apart
_ROUNDS = ((17, 0xED5AD4BB), (11, 0xAC4C1B51), (15, 0x31848BAB))
_LAST_SHIFT = 14

Bits = Any  # LANES unsigned integers of 32 bits: an LLVM value or an array


def hash_lanes(operation: Callable[[str, Bits, Bits | int], Bits], low: Bits, high: Bits, positions: Bits) -> Bits:
    """32 random bits per lane; the operations are `*`, `^` and `>>` of unsigned integers."""
    bits = operation("*", positions, _SPREAD)
    for half in (low, high):
        bits = operation("^", bits, half)
        for shift, factor in _ROUNDS:
            bits = operation("*", operation("^", bits, operation(">>", bits, shift)), factor)
        bits = operation("^", bits, operation(">>", bits, _LAST_SHIFT))
    return bits


def random_lanes(key: int, position: int) -> NDArray[np.float32]:
    """The numbers of one register, by NumPy."""
    low, high = (np.uint32(half & 0xFFFFFFFF) for half in (key, key >> 32))
    positions = (np.arange(LANES, dtype=np.int64) + position).astype(np.uint32)
    bits = hash_lanes(_operation, low, high, positions)
    fractions: NDArray[np.uint32] = bits >> np.uint32(FRACTION_SHIFT) | np.uint32(ONE)
    return fractions.view(np.float32) - np.float32(1)


def _operation(operator: str, a: NDArray[np.uint32], b: NDArray[np.uint32] | int) -> NDArray[np.uint32]:
    other = np.asarray(b, np.uint32)
    results: dict[str, Callable[[], NDArray[np.uint32]]] = {
        "*": lambda: a * other,
        "^": lambda: a ^ other,
        ">>": lambda: a >> other,
    }
    return results[operator]()
