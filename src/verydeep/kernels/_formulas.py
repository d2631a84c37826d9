"""The formulas of plain and highway layers, forward and backward, for one vector of samples.

z are the pre-activations without their biases b; h, t, c, x and y are the paper's; d is the derivative of the loss.
"""

from collections.abc import Callable

from verydeep.kernels.ir._vector import V, expm1

_Activation = Callable[[V], V]


_SHUT = -60.0  # a gate with a smaller z is 0; its exact value is below 1e-26


def tanh(z: V) -> V:
    """The hyperbolic tangent, exact to rounding also for small z."""
    e = _exp_of_twice(z)
    return e / (e + 2.0)


def relu(z: V) -> V:
    """max(z, 0); NaN stays NaN."""
    return z.where("<=", 0.0, 0.0, z)


def sigmoid(z: V) -> V:
    """1 / (1 + exp(-z)), exactly 0 where the gate is shut."""
    return z.where("<", _SHUT, 0.0, 1.0 / _one_and_exp(z))


def d_tanh(h: V, dh: V) -> V:
    """The gradient of z, from the value h and its gradient."""
    return dh * (1.0 - h * h)


def d_relu(h: V, dh: V) -> V:
    """The gradient of z, from the value h and its gradient."""
    return h.where("<=", 0.0, 0.0, dh)


def tanh_and_sigmoid(z: V, zt: V) -> tuple[V, V]:
    """tanh(z) and sigmoid(zt) with one division, the slowest instruction; the product of denominators cannot overflow.

    The gate is exactly 0 where it is shut and exactly 1 where it is open: an error in its last bit would let that share
    of a large x through.
    """
    e, gate = _exp_of_twice(z), _one_and_exp(zt)
    under = e + 2.0
    inverse = 1.0 / (under * gate)
    t = gate.where("==", 1.0, 1.0, under * inverse)
    return e * (gate * inverse), zt.where("<", _SHUT, 0.0, t)


def relu_and_sigmoid(z: V, zt: V) -> tuple[V, V]:
    """relu(z) of the block state and sigmoid(zt) of the gate."""
    return relu(z), sigmoid(zt)


def _exp_of_twice(z: V) -> V:
    """exp(2 z) - 1, with z clamped to where tanh is not yet 1 to rounding."""
    return expm1(z.between(-10.0, 10.0), 2.0)


def _one_and_exp(z: V) -> V:
    """1 + exp(-z)."""
    return expm1(z.between(_SHUT, 87.0), -1.0) + 2.0


def plain(activation: _Activation) -> Callable[..., tuple[V, ...]]:
    """Equation 1: a plain layer."""
    return lambda z, b: (activation(z + b),)


def lerp(x: V, h: V, t: V) -> V:
    """The y of Equation 3, exact at both ends as torch.lerp: x where t is 0 and h where t is 1, however large x is."""
    return t.where("<", 0.5, x + t * (h - x), h - (h - x) * (1.0 - t))


def coupled(both: Callable[[V, V], tuple[V, V]]) -> Callable[..., tuple[V, ...]]:
    """Equation 3: a highway layer with C = 1 - T."""

    def formula(x: V, zh: V, zt: V, bh: V, bt: V) -> tuple[V, ...]:
        h, t = both(zh + bh, zt + bt)
        return h, t, lerp(x, h, t)

    return formula


def independent(both: Callable[[V, V], tuple[V, V]]) -> Callable[..., tuple[V, ...]]:
    """Equation 2: a highway layer with an independent C."""

    def formula(x: V, zh: V, zt: V, zc: V, bh: V, bt: V, bc: V) -> tuple[V, ...]:
        h, t = both(zh + bh, zt + bt)
        c = sigmoid(zc + bc)
        return h, t, c, h * t + x * c

    return formula


def plain_backward(derivative: Callable[[V, V], V]) -> Callable[..., tuple[V, ...]]:
    """dz, returned twice: as a matrix, and for its sum, which is the gradient of the bias."""

    def formula(dy: V, h: V) -> tuple[V, ...]:
        dz = derivative(h, dy)
        return dz, dz

    return formula


def coupled_backward(derivative: Callable[[V, V], V]) -> Callable[..., tuple[V, ...]]:
    """The backward pass of the appendix: the carried gradient of x, dz of H and T, and both again for their sums."""

    def formula(dy: V, x: V, h: V, t: V) -> tuple[V, ...]:
        dzh = derivative(h, t * dy)
        carry = 1.0 - t
        dzt = (h - x) * dy * (t * carry)
        return carry * dy, dzh, dzt, dzh, dzt

    return formula


def independent_backward(derivative: Callable[[V, V], V]) -> Callable[..., tuple[V, ...]]:
    """As `coupled_backward`, with an independent carry gate."""

    def formula(dy: V, x: V, h: V, t: V, c: V) -> tuple[V, ...]:
        dzh = derivative(h, t * dy)
        dzt = h * dy * (t * (1.0 - t))
        dzc = x * dy * (c * (1.0 - c))
        return c * dy, dzh, dzt, dzc, dzh, dzt, dzc

    return formula
