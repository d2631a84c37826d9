"""Initial weights and gate biases.

Weights: the normalized initialisation of Glorot & Bengio 2010 for saturating activations, that of He et al. 2015 for
rectifiers; the paper uses both (Section 3.1). The paper says that highway networks train with various zero-mean
distributions: orthogonal matrices (Saxe et al. 2013), sparse ones (Martens 2010), Laplace's distribution and a normal
one of variance 1 / fan-in are here to try. Gate biases: Section 2.2.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from verydeep.errors import UserError, unknown
from verydeep.nn._activations import RECTIFIERS, Activation, activation_name, resolve_activation

SCHEMES = (
    "auto",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "orthogonal",
    "sparse",
    "laplace",
    "scaled_normal",
)
_CONNECTIONS = 15  # weights per unit of the sparse scheme that are not 0, as in Martens 2010


def init_weight(weight: Tensor, fan_in: int, fan_out: int, activation: str | Activation, scheme: str = "auto") -> None:
    """Fill `weight` in place.

    Fan-in and fan-out are arguments, so that stacked weights can be filled in one call.

    Args:
        weight: One or several matrices with `fan_in` columns, or filters.
        fan_in: Number of values that enter a unit.
        fan_out: Number of units that a value enters.
        activation: The activation of the units.
        scheme: `glorot_*` and `he_*` have the variances of their authors, `scaled_normal` has 1 / fan-in. `auto` is
            He's normal for rectifiers and Glorot's uniform for all other activations. `sparse` and `laplace` have the
            variance of `auto`; `orthogonal` has orthogonal rows or columns, times sqrt(2) for rectifiers. A number such
            as "0.05" is the standard deviation of a normal distribution.
    """
    if (given := _deviation(scheme)) is not None:
        with torch.no_grad():
            weight.normal_(0, given)
        return
    if scheme not in SCHEMES:
        raise unknown("initialisation", scheme, SCHEMES)
    rectifier = activation_name(resolve_activation(activation)).lower() in RECTIFIERS
    if scheme == "auto":
        scheme = "he_normal" if rectifier else "glorot_uniform"
    he, glorot = math.sqrt(2 / fan_in), math.sqrt(2 / (fan_in + fan_out))
    std = he if scheme.startswith("he") or (rectifier and not scheme.startswith("glorot")) else glorot
    with torch.no_grad():
        match scheme:
            case "he_normal" | "glorot_normal":
                weight.normal_(0, std)
            case "he_uniform" | "glorot_uniform":
                weight.uniform_(-math.sqrt(3) * std, math.sqrt(3) * std)
            case "scaled_normal":
                weight.normal_(0, math.sqrt(1 / fan_in))
            case "laplace":
                weight.exponential_().mul_(torch.rand_like(weight).sub_(0.5).sign_()).mul_(std / math.sqrt(2))
            case "sparse":
                _fill_sparse(weight, fan_in, std)
            case _:
                _fill_orthogonal(weight, fan_in, fan_out, math.sqrt(2) if rectifier else 1.0)


def _deviation(scheme: str) -> float | None:
    """The standard deviation that a scheme gives as a number; None if it is a name."""
    try:
        number = float(scheme)
    except ValueError:
        return None
    if not 0 <= number < math.inf:
        raise UserError(f"initial weights need a standard deviation of 0 or more, got {scheme}")
    return number


def _fill_sparse(weight: Tensor, fan_in: int, std: float) -> None:
    """Fill all but a few weights of each unit with 0; the others make up for it, so that the variance stays."""
    count = min(_CONNECTIONS, fan_in)
    rows = weight.numel() // fan_in
    chosen = torch.rand(rows, fan_in, device=weight.device).topk(count).indices
    values = torch.randn(rows, count, device=weight.device, dtype=weight.dtype) * (std * math.sqrt(fan_in / count))
    weight.copy_(weight.new_zeros(rows, fan_in).scatter_(1, chosen, values).view_as(weight))


def _fill_orthogonal(weight: Tensor, fan_in: int, fan_out: int, gain: float) -> None:
    """Fill each matrix with orthogonal rows or, if it has more rows than columns, orthogonal columns."""
    rows = min(fan_out, weight.numel() // fan_in)  # of one of several matrices; a filter has fewer than its fan-out
    if not weight.is_meta:
        matrices = [nn.init.orthogonal_(each, gain) for each in weight.new_empty(weight.numel()).view(-1, rows, fan_in)]
        weight.copy_(torch.stack(matrices).view_as(weight))


def suggest_gate_bias(depth: int, kind: Literal["conv", "linear"] = "conv") -> float:
    """An initial gate bias for a highway network of `depth` layers.

    Convolutional networks follow the paper's guideline: -1, -2 and -3 at depth 10, 20 and 30 (Section 2.2). For fully
    connected networks, the best 50-layer networks of Section 4 have -2 on MNIST and -4 on CIFAR-100; this uses the
    second, which copies more of the input. The paper gives no other depths. For those, the bias keeps the expected
    number of open layers, depth * sigmoid(bias), constant, which gives -7 for 1000 fully connected layers. The result
    lies between -1 and -10, the range of the paper's search. Treat it as a starting point and tune it.

    For fully connected networks this means 0.9 open layers. In our own search at 10 to 100 layers (results/fig1), 0.03
    to 3 open layers did well, and hardly any network with more.

    Args:
        depth: Number of highway layers of the network.
        kind: "conv" for convolutional networks, "linear" for fully connected ones.

    Example:
        >>> from verydeep.nn import suggest_gate_bias
        >>> suggest_gate_bias(20)
        -2.0
        >>> [round(suggest_gate_bias(depth, "linear"), 1) for depth in (10, 50, 1000)]
        [-2.3, -4.0, -7.0]
    """
    if depth < 1:
        raise UserError(f"depth must be at least 1, got {depth}")
    if kind not in _LAST_KNOWN:
        raise unknown("kind of network", kind, _LAST_KNOWN)
    last_depth, last_bias = _LAST_KNOWN[kind]
    if kind == "conv" and depth <= last_depth:
        return min(-1.0, -depth / 10)
    open_layers = last_depth / (1 + math.exp(-last_bias))
    return max(-10.0, min(-1.0, -math.log(max(depth / open_layers, 1.01) - 1)))


_LAST_KNOWN = {"conv": (30, -3.0), "linear": (50, -4.0)}
