"""Initial weights and gate biases.

Weights: the normalized initialisation of Glorot & Bengio 2010 for saturating activations, that of He et al. 2015 for
rectifiers; the paper uses both (Section 3.1). Gate biases: Section 2.2.
"""

import math
from typing import Literal

import torch
from torch import Tensor

from verydeep.errors import UserError, unknown
from verydeep.nn._activations import RECTIFIERS, Activation, activation_name, resolve_activation

SCHEMES = ("auto", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform")


def init_weight(weight: Tensor, fan_in: int, fan_out: int, activation: str | Activation, scheme: str = "auto") -> None:
    """Fill `weight` in place; "auto" is He's normal for rectifiers and Glorot's uniform for all other activations.

    Fan-in and fan-out are arguments, so that stacked weights can be filled in one call.
    """
    if scheme not in SCHEMES:
        raise unknown("initialisation", scheme, SCHEMES)
    if scheme == "auto":
        rectifier = activation_name(resolve_activation(activation)).lower() in RECTIFIERS
        scheme = "he_normal" if rectifier else "glorot_uniform"
    std = math.sqrt(2 / fan_in) if scheme.startswith("he") else math.sqrt(2 / (fan_in + fan_out))
    with torch.no_grad():
        if scheme.endswith("normal"):
            weight.normal_(0, std)
        else:
            weight.uniform_(-math.sqrt(3) * std, math.sqrt(3) * std)


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
