"""Arithmetic on vector registers, written as formulas, and how registers get from and into memory.

A compiler vectorises a loop only if it can prove that it may; here every instruction is a vector instruction by
construction, on every processor that LLVM supports. Where registers have another size, LLVM splits or joins them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from verydeep.kernels.ir._emitter import Handle, emitter
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._values import Int, Ptr, int_handle


class Number:
    """A single float32."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def __add__(self, other: Number) -> Number:
        return Number(emitter().add_numbers(self.handle, other.handle))


class Mask(NamedTuple):
    """A comparison of every lane, for `where`."""

    left: Vec
    operator: str
    right: Vec | float

    def __bool__(self) -> bool:
        raise TypeError("known only when the kernel runs, for every lane; use `where` instead of `if`")


class Vec:
    """One or more registers in a formula: `a * b + c` emits the instructions for all of them, side by side.

    A formula is a long chain of instructions that wait for each other; with two registers the processor can work on
    the other one meanwhile. A value of one register combines with values of any number of registers.
    """

    def __init__(self, *registers: Handle) -> None:
        self.registers = registers

    @classmethod
    def zeros(cls) -> Vec:
        """A register of zeros."""
        return cls(emitter().vector(0.0))

    @classmethod
    def join(cls, parts: Sequence[Vec]) -> Vec:
        """Several registers as one value."""
        return cls(*(register for part in parts for register in part.registers))

    def split(self) -> list[Vec]:
        """Each register as a value of its own."""
        return [Vec(register) for register in self.registers]

    def each(self, emit: Callable[..., Handle], *others: Vec | float) -> Vec:
        """Emit an operation for these registers and those of other values."""
        count = max(len(self.registers), *(len(v.registers) for v in others if isinstance(v, Vec)), 1)
        return Vec(*map(emit, *(_lift(value, count) for value in (self, *others))))

    def __add__(self, other: Vec | float) -> Vec:
        return self.each(lambda a, b: emitter().vector_operation("+", a, b), other)

    def __radd__(self, other: float) -> Vec:
        return self + other

    def __sub__(self, other: Vec | float) -> Vec:
        return self.each(lambda a, b: emitter().vector_operation("-", a, b), other)

    def __rsub__(self, other: float) -> Vec:
        return self.each(lambda a, b: emitter().vector_operation("-", b, a), other)

    def __mul__(self, other: Vec | float) -> Vec:
        return self.each(lambda a, b: emitter().vector_operation("*", a, b), other)

    def __rmul__(self, other: float) -> Vec:
        return self * other

    def __truediv__(self, other: Vec) -> Vec:
        return self.each(lambda a, b: emitter().vector_operation("/", a, b), other)

    def __rtruediv__(self, other: float) -> Vec:
        return self.each(lambda a, b: emitter().vector_operation("/", b, a), other)

    def __lt__(self, other: Vec | float) -> Mask:
        return Mask(self, "<", other)

    def __le__(self, other: Vec | float) -> Mask:
        return Mask(self, "<=", other)

    def __gt__(self, other: Vec | float) -> Mask:
        return Mask(self, ">", other)

    def __eq__(self, other: Vec | float) -> Mask:  # type: ignore[override]
        return Mask(self, "==", other)

    __hash__ = None  # type: ignore[assignment]

    def clamp(self, least: float, most: float) -> Vec:
        """Limited to a range; NaN stays NaN."""
        limited = where(self < least, least, self)
        return where(limited > most, most, limited)

    def power_of_two(self) -> Vec:
        """2 to the power of the integer that adding `1.5 * 2**23` has moved into the low bits."""
        return self.each(lambda a: emitter().power_of_two(a))

    def accumulate(self, other: Vec) -> Vec:
        """This register plus every register of another value, in order, with one rounding per addition."""
        (total,) = self.registers
        for register in other.registers:
            total = emitter().add_exactly(total, register)
        return Vec(total)

    def sum_lanes(self) -> Number:
        """The sum of all lanes, always in the same order so that the bits are the same."""
        vector, lanes = self, LANES
        while lanes > 1:
            lanes //= 2
            vector = vector.accumulate(shuffle(vector, vector, [(n + lanes) % LANES for n in range(LANES)]))
        (register,) = vector.registers
        return Number(emitter().first_lane(register))


def where(mask: Mask, then: Vec | float, otherwise: Vec | float) -> Vec:
    """`then` in lanes where the comparison holds, `otherwise` in the others and where NaN is compared."""

    def select(a: Handle, b: Handle, then: Handle, otherwise: Handle) -> Handle:
        return emitter().select(mask.operator, a, b, then, otherwise)

    return mask.left.each(select, mask.right, then, otherwise)


def multiply_add(a: Vec, b: Vec, c: Vec) -> Vec:
    """`a * b + c` as one instruction."""
    return a.each(lambda a, b, c: emitter().multiply_add(a, b, c), b, c)


def round_neighbours(a: Vec, b: Vec) -> Vec:
    """A register of pairs of bfloat16: the numbers of a, then those of b, two neighbours in each lane.

    A pair has the size of a number, so registers of pairs are loaded, stored, shuffled and broadcast as all others.
    """
    return a.each(lambda a, b: emitter().round_neighbours(a, b), b)


def round_lanes(a: Vec, b: Vec) -> Vec:
    """A register of pairs of bfloat16: each lane has the numbers of this lane of a and b."""
    return a.each(lambda a, b: emitter().round_lanes(a, b), b)


def multiply_pairs(a: Vec, b: Vec, c: Vec) -> Vec:
    """In each lane, the two products of the pairs of a and b, and c, added in float32."""
    return a.each(lambda a, b, c: emitter().multiply_pairs(a, b, c), b, c)


def random(key: Int, position: Int) -> Vec:
    """A register of random numbers from 0 up to 1.

    Each lane is a function of the key and of its position, the given one in the first lane; `_random` has the function.
    """
    return Vec(emitter().random(key.handle, position.handle))


def broadcast(number: Number) -> Vec:
    """A register with one number in all lanes."""
    return Vec(emitter().broadcast(number.handle))


def shuffle(a: Vec, b: Vec, lanes: Sequence[int]) -> Vec:
    """A register made of lanes of two registers; the lanes of the second are numbered from LANES on."""
    return a.each(lambda a, b: emitter().shuffle(a, b, lanes), b)


def load(address: Ptr) -> Vec:
    """A register from memory."""
    return Vec(emitter().load_vector(address.handle))


def store(address: Ptr, value: Vec) -> None:
    """A register into memory."""
    (register,) = value.registers
    emitter().store_vector(register, address.handle)


def load_lanes(address: Ptr, count: Int | int) -> Vec:
    """A register whose first `count` lanes, fewer than LANES, come from memory; the others are 0."""
    return Vec(emitter().load_lanes(address.handle, int_handle(count)))


def store_lanes(address: Ptr, value: Vec, count: Int | int) -> None:
    """The first `count` lanes of a register into memory; what follows them there stays as it is."""
    (register,) = value.registers
    emitter().store_lanes(register, address.handle, int_handle(count))


def load_number(address: Ptr) -> Number:
    """One number from memory."""
    return Number(emitter().load_number(address.handle))


def store_number(address: Ptr, value: Number | float) -> None:
    """One number into memory."""
    handle = value.handle if isinstance(value, Number) else emitter().number(value)
    emitter().store_number(handle, address.handle)


@contextmanager
def preserved(address: Ptr) -> Iterator[None]:
    """What is stored inside into the LANES numbers at an address is undone at the end; they may be uninitialised."""
    saved = emitter().save(address.handle)
    yield
    emitter().restore(saved, address.handle)


def _lift(value: Vec | float, count: int) -> Sequence[Handle]:
    """The registers of a value: as many as asked for, if it is a number or a single register."""
    registers = value.registers if isinstance(value, Vec) else (emitter().vector(float(value)),)
    return registers * count if len(registers) == 1 else registers
