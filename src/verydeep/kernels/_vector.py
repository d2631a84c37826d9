"""Arithmetic on vector registers, written as formulas.

Loops become vector code only if a compiler can prove that they may; here every instruction is one by construction, on
any processor LLVM knows: where registers have another size, it splits or joins them.
"""

from __future__ import annotations

from llvmlite import ir

from verydeep.kernels._ir import LANES, MASK, VECTOR, Value, vector_function

# A product and a sum may become one instruction, and -0 may be 0; NaN and infinity keep their meaning.
_FLAGS = ("contract", "nsz")


class V:
    """A vector in a formula: `a * b + c` emits the instructions for it."""

    def __init__(self, builder: ir.IRBuilder, value: Value) -> None:
        self.builder, self.value = builder, value

    def lift(self, other: V | float) -> Value:
        """The register of another vector, or one with a number in all lanes."""
        return other.value if isinstance(other, V) else ir.Constant(VECTOR, [float(other)] * LANES)

    def make(self, value: Value) -> V:
        return V(self.builder, value)

    def __add__(self, other: V | float) -> V:
        return self.make(self.builder.fadd(self.value, self.lift(other), flags=_FLAGS))

    def __sub__(self, other: V | float) -> V:
        return self.make(self.builder.fsub(self.value, self.lift(other), flags=_FLAGS))

    def __rsub__(self, other: float) -> V:
        return self.make(self.builder.fsub(self.lift(other), self.value, flags=_FLAGS))

    def __mul__(self, other: V | float) -> V:
        return self.make(self.builder.fmul(self.value, self.lift(other), flags=_FLAGS))

    def __truediv__(self, other: V) -> V:
        return self.make(self.builder.fdiv(self.value, other.value, flags=_FLAGS))

    def __rtruediv__(self, other: float) -> V:
        return self.make(self.builder.fdiv(self.lift(other), self.value, flags=_FLAGS))

    def where(self, comparison: str, limit: float, then: V | float, otherwise: V | float) -> V:
        """`then` where this compares so with the limit, `otherwise` elsewhere and where this is NaN."""
        found = self.builder.fcmp_ordered(comparison, self.value, self.lift(limit))
        return self.make(self.builder.select(found, self.lift(then), self.lift(otherwise)))

    def between(self, least: float, most: float) -> V:
        """Limited to a range; a NaN stays."""
        limited = self.where("<", least, least, self)
        return limited.where(">", most, most, limited)

    def call(self, name: str, *others: V) -> V:
        """LLVM's own function of this and other vectors."""
        function = vector_function(self.builder, name, 1 + len(others))
        return self.make(self.builder.call(function, [self.value, *(other.value for other in others)]))

    def power_of_two(self) -> V:
        """2 to the power of the whole number which adding `1.5 * 2**23` has moved into the low bits."""
        bits = self.builder.bitcast(self.value, MASK)
        exponent = self.builder.shl(bits, ir.Constant(MASK, [23] * LANES))
        shifted = self.builder.add(exponent, ir.Constant(MASK, [127 << 23] * LANES))
        return self.make(self.builder.bitcast(shifted, VECTOR))


def expm1(x: V) -> V:
    """exp(x) - 1 for x from -87 to 87, within a few units in the last place, near 0 too.

    x = n log(2) + r with a whole n; then exp(x) - 1 = 2**n (exp(r) - 1) + (2**n - 1). For |r| <= log(2) / 2 a
    polynomial (Chebyshev's, of (exp(r) - 1) / r) is within 3e-8 of exp(r) - 1; its pairs of terms are computed side by
    side.
    """
    shifted = x * 1.4426950408889634 + 12582912.0
    n = shifted - 12582912.0
    r = x - n * 0.693359375 - n * -2.12194440e-4
    square = r * r
    low = r * 0.5000000048561879 + 1.0
    middle = r * 0.04166634652876332 + 0.16666501973177983
    high = r * 0.001394163535049371 + 0.008369510760539073
    scale = shifted.power_of_two()
    return (low + square * (middle + square * high)) * (r * scale) + (scale - 1.0)
