"""Arithmetic on vector registers, written as formulas.

A compiler vectorises a loop only if it can prove that it may; here every instruction is a vector instruction by
construction, on every processor that LLVM supports. Where registers have another size, LLVM splits or joins them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from verydeep.kernels.ir._ir import LANES, MASK, VECTOR, Value

# A product and a sum may become one instruction, and -0 may be 0; NaN and infinity keep their meaning.
_FLAGS = ("contract", "nsz")


class V:
    """One or more registers in a formula: `a * b + c` emits the instructions for all of them, side by side.

    A formula is a long chain of instructions that wait for each other; with two registers the processor can work on
    the other one meanwhile. A value of one register combines with values of any number of registers.
    """

    def __init__(self, builder: ir.IRBuilder, *registers: Value) -> None:
        self.builder, self.registers = builder, registers

    def lift(self, other: V | float) -> Sequence[Value]:
        """The registers of another value, or as many registers with a number in all lanes."""
        if not isinstance(other, V):
            return [ir.Constant(VECTOR, [float(other)] * LANES)] * len(self.registers)
        return other.registers * len(self.registers) if len(other.registers) == 1 else other.registers

    def each(self, emit: Callable[..., Value], *others: V | float) -> V:
        """Emit an instruction for these registers and those of other values."""
        count = max(len(self.registers), *(len(v.registers) for v in others if isinstance(v, V)), 1)
        mine = self.registers * count if len(self.registers) == 1 else self.registers
        same = V(self.builder, *mine)
        return V(self.builder, *map(emit, mine, *(same.lift(other) for other in others)))

    def __add__(self, other: V | float) -> V:
        return self.each(lambda a, b: self.builder.fadd(a, b, flags=_FLAGS), other)

    def __sub__(self, other: V | float) -> V:
        return self.each(lambda a, b: self.builder.fsub(a, b, flags=_FLAGS), other)

    def __rsub__(self, other: float) -> V:
        return self.each(lambda a, b: self.builder.fsub(b, a, flags=_FLAGS), other)

    def __mul__(self, other: V | float) -> V:
        return self.each(lambda a, b: self.builder.fmul(a, b, flags=_FLAGS), other)

    def __truediv__(self, other: V) -> V:
        return self.each(lambda a, b: self.builder.fdiv(a, b, flags=_FLAGS), other)

    def __rtruediv__(self, other: float) -> V:
        return self.each(lambda a, b: self.builder.fdiv(b, a, flags=_FLAGS), other)

    def where(self, comparison: str, limit: float, then: V | float, otherwise: V | float) -> V:
        """`then` where the comparison with the limit holds, `otherwise` elsewhere and where this is NaN."""

        def choose(a: Value, limit: Value, then: Value, otherwise: Value) -> Value:
            return self.builder.select(self.builder.fcmp_ordered(comparison, a, limit), then, otherwise)

        return self.each(choose, limit, then, otherwise)

    def between(self, least: float, most: float) -> V:
        """Clamped to a range; NaN stays NaN."""
        limited = self.where("<", least, least, self)
        return limited.where(">", most, most, limited)

    def power_of_two(self) -> V:
        """2 to the power of the integer that adding `1.5 * 2**23` has moved into the low bits."""

        def shift(value: Value) -> Value:
            bits = self.builder.bitcast(value, MASK)
            exponent = self.builder.shl(bits, ir.Constant(MASK, [23] * LANES))
            shifted = self.builder.add(exponent, ir.Constant(MASK, [127 << 23] * LANES))
            return self.builder.bitcast(shifted, VECTOR)

        return self.each(shift)


def expm1(x: V, factor: float = 1.0) -> V:
    """exp(y) - 1 for y = factor x from -87 to 87, within a few units in the last place, also near 0.

    y = n log(2) + r with an integer n; then exp(y) - 1 = 2**n (exp(r) - 1) + (2**n - 1). For |r| <= log(2) / 2 a
    Chebyshev polynomial of (exp(r) - 1) / r is within 3e-8 of exp(r) - 1; its pairs of terms are computed side by
    side. A factor that is a power of two costs no time and no accuracy: it is part of the constants, and r is
    r / factor.
    """
    shifted = x * (1.4426950408889634 * factor) + 12582912.0
    n = shifted - 12582912.0
    r = x - n * (0.693359375 / factor) - n * (-2.12194440e-4 / factor)
    square = r * r
    low = r * (0.5000000048561879 * factor**2) + factor
    middle = r * (0.04166634652876332 * factor**4) + 0.16666501973177983 * factor**3
    high = r * (0.001394163535049371 * factor**6) + 0.008369510760539073 * factor**5
    scale = shifted.power_of_two()
    return (low + square * (middle + square * high)) * (r * scale) + (scale - 1.0)
