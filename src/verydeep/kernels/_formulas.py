"""The formulas of plain, residual and highway layers, forward and backward, for one vector of samples.

z are the pre-activations without their biases b; h, t, c, x and y are the paper's; d is the derivative of the loss.
"""

from collections.abc import Callable

from verydeep.kernels.ir._vector import Vec, where

_Activation = Callable[[Vec], Vec]

_HALLEY_STEPS = 7
_SHUT = -60.0  # a gate with a smaller z is 0; its exact value is below 1e-26


def tanh(z: Vec) -> Vec:
    """The hyperbolic tangent, exact to rounding also for small z."""
    e = _exp_of_twice(z)
    return e / (e + 2.0)


def relu(z: Vec) -> Vec:
    """max(z, 0); NaN stays NaN."""
    return where(z <= 0.0, 0.0, z)


def larger(a: Vec, b: Vec) -> Vec:
    """The larger of two numbers; NaN if one of them is."""
    is_number = b == b  # noqa: PLR0124 - NaN is not equal to itself
    return where(is_number, where(a < b, b, a), b)


def sigmoid(z: Vec) -> Vec:
    """1 / (1 + exp(-z)), exactly 0 where the gate is shut."""
    return where(z < _SHUT, 0.0, 1.0 / _one_and_exp(z))


def d_tanh(h: Vec, dh: Vec) -> Vec:
    """The gradient of z, from the value h and its gradient."""
    return dh * (1.0 - h * h)


def d_relu(h: Vec, dh: Vec) -> Vec:
    """The gradient of z, from the value h and its gradient."""
    return where(h <= 0.0, 0.0, dh)


def tanh_and_sigmoid(z: Vec, zt: Vec) -> tuple[Vec, Vec]:
    """tanh(z) and sigmoid(zt) with one division, the slowest instruction; the product of denominators cannot overflow.

    The gate is exactly 0 where it is shut and exactly 1 where it is open: an error in its last bit would let that share
    of a large x through.
    """
    e, gate = _exp_of_twice(z), _one_and_exp(zt)
    under = e + 2.0
    inverse = 1.0 / (under * gate)
    t = where(gate == 1.0, 1.0, under * inverse)
    return e * (gate * inverse), where(zt < _SHUT, 0.0, t)


def relu_and_sigmoid(z: Vec, zt: Vec) -> tuple[Vec, Vec]:
    """relu(z) of the block state and sigmoid(zt) of the gate."""
    return relu(z), sigmoid(zt)


def _exp_of_twice(z: Vec) -> Vec:
    """exp(2 z) - 1, with z clamped to where tanh is not yet 1 to rounding."""
    return _expm1(z.clamp(-10.0, 10.0), 2.0)


def _one_and_exp(z: Vec) -> Vec:
    """1 + exp(-z)."""
    return _expm1(z.clamp(_SHUT, 87.0), -1.0) + 2.0


def _expm1(x: Vec, factor: float) -> Vec:
    """exp(y) - 1 for y = factor x from -87 to 87, within a few units in the last place, also near 0.

    y = n log(2) + r with an integer n; then exp(y) - 1 = 2**n (exp(r) - 1) + (2**n - 1). For |r| <= log(2) / 2 a
    Chebyshev polynomial of (exp(r) - 1) / r is within 3e-8 of exp(r) - 1; its pairs of terms are computed side by
    side. A factor that is a power of two costs no time and no accuracy: it is part of the constants, and r is
    r / factor.
    """
    scale, product = _power_and_product(x, factor)
    return product + (scale - 1.0)


def _power_and_product(x: Vec, factor: float) -> tuple[Vec, Vec]:
    """2**n and 2**n (exp(r) - 1) of `_expm1`."""
    shifted = x * (1.4426950408889634 * factor) + 12582912.0
    n = shifted - 12582912.0
    r = x - n * (0.693359375 / factor) - n * (-2.12194440e-4 / factor)
    square = r * r
    low = r * (0.5000000048561879 * factor**2) + factor
    middle = r * (0.04166634652876332 * factor**4) + 0.16666501973177983 * factor**3
    high = r * (0.001394163535049371 * factor**6) + 0.008369510760539073 * factor**5
    scale = shifted.power_of_two()
    return scale, (low + square * (middle + square * high)) * (r * scale)


def exp(x: Vec) -> Vec:
    """The exponential of numbers up to 0, exact to rounding, and at least 1e-38."""
    scale, product = _power_and_product(x.clamp(-87.0, 0.0), 1.0)
    return product + scale


def log1p(x: Vec) -> Vec:
    """The logarithm of 1 + x, for x from 0 to 20,000, exact to rounding also for small x.

    Halley's method for exp(y) - 1 = x converges cubically, after steps of about 2 while it is far away.
    """
    y = 2.0 * x / (x + 2.0)
    for _ in range(_HALLEY_STEPS):
        e = _expm1(y, 1.0)
        y = y + 2.0 * (x - e) / (x + e + 2.0)
    return y


def plain(activation: _Activation) -> Callable[..., tuple[Vec, ...]]:
    """Equation 1: a plain layer."""
    return lambda z, b: (activation(z + b),)


def lerp(x: Vec, h: Vec, t: Vec) -> Vec:
    """The y of Equation 3, exact at both ends as torch.lerp: x where t is 0 and h where t is 1, however large x is."""
    return where(t < 0.5, x + t * (h - x), h - (h - x) * (1.0 - t))


def coupled(both: Callable[[Vec, Vec], tuple[Vec, Vec]]) -> Callable[..., tuple[Vec, ...]]:
    """Equation 3: a highway layer with C = 1 - T."""

    def formula(x: Vec, zh: Vec, zt: Vec, bh: Vec, bt: Vec) -> tuple[Vec, ...]:
        h, t = both(zh + bh, zt + bt)
        return h, t, lerp(x, h, t)

    return formula


def independent(both: Callable[[Vec, Vec], tuple[Vec, Vec]]) -> Callable[..., tuple[Vec, ...]]:
    """Equation 2: a highway layer with an independent C."""

    def formula(x: Vec, zh: Vec, zt: Vec, zc: Vec, bh: Vec, bt: Vec, bc: Vec) -> tuple[Vec, ...]:
        h, t = both(zh + bh, zt + bt)
        c = sigmoid(zc + bc)
        return h, t, c, h * t + x * c

    return formula


def residual(activation: _Activation) -> Callable[..., tuple[Vec, ...]]:
    """A residual layer, `y = x + H(x)`."""

    def formula(x: Vec, z: Vec, b: Vec) -> tuple[Vec, ...]:
        h = activation(z + b)
        return h, x + h

    return formula


def plain_backward(derivative: Callable[[Vec, Vec], Vec]) -> Callable[..., tuple[Vec, ...]]:
    """dz, returned twice: as a matrix, and for its sum, which is the gradient of the bias."""

    def formula(dy: Vec, h: Vec) -> tuple[Vec, ...]:
        dz = derivative(h, dy)
        return dz, dz

    return formula


def residual_backward(derivative: Callable[[Vec, Vec], Vec]) -> Callable[..., tuple[Vec, ...]]:
    """The gradient of x that is passed on, and dz twice."""

    def formula(dy: Vec, _x: Vec, h: Vec) -> tuple[Vec, ...]:
        dz = derivative(h, dy)
        return dy, dz, dz

    return formula


def coupled_backward(derivative: Callable[[Vec, Vec], Vec]) -> Callable[..., tuple[Vec, ...]]:
    """The backward pass of the appendix: the carried gradient of x, dz of H and T, and both again for their sums."""

    def formula(dy: Vec, x: Vec, h: Vec, t: Vec) -> tuple[Vec, ...]:
        dzh = derivative(h, t * dy)
        carry = 1.0 - t
        dzt = (h - x) * dy * (t * carry)
        return carry * dy, dzh, dzt, dzh, dzt

    return formula


def independent_backward(derivative: Callable[[Vec, Vec], Vec]) -> Callable[..., tuple[Vec, ...]]:
    """As `coupled_backward`, with an independent carry gate."""

    def formula(dy: Vec, x: Vec, h: Vec, t: Vec, c: Vec) -> tuple[Vec, ...]:
        dzh = derivative(h, t * dy)
        dzt = h * dy * (t * (1.0 - t))
        dzc = x * dy * (c * (1.0 - c))
        return c * dy, dzh, dzt, dzc, dzh, dzt, dzc

    return formula
