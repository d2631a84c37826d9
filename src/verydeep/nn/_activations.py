"""Activation functions by name, and those whose weights are initialised by He's scheme."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep.errors import UserError, unknown

Activation = Callable[[Tensor], Tensor]


def _identity(x: Tensor) -> Tensor:
    return x


def lwta(x: Tensor) -> Tensor:
    """Local winner-take-all (Srivastava et al. 2013): of each pair of neighbouring units the larger one passes.

    Both pass if they are equal.
    """
    if x.shape[-1] % 2:
        raise UserError(f"lwta lets pairs of units compete and needs an even width, got {x.shape[-1]}")
    pairs = torch.unflatten(x, -1, (-1, 2))
    return torch.where(pairs == pairs.amax(-1, keepdim=True), pairs, 0.0).flatten(-2)


def maxout(x: Tensor) -> Tensor:
    """Maxout (Goodfellow et al. 2013) over two pieces: the larger of each pair of neighbouring values, half as many."""
    pairs = torch.unflatten(x, -1, (-1, 2))
    return pairs.amax(-1)


ACTIVATIONS: dict[str, Activation] = {
    "elu": F.elu,
    "gelu": F.gelu,
    "hardsigmoid": F.hardsigmoid,
    "identity": _identity,
    "leaky_relu": F.leaky_relu,
    "lwta": lwta,
    "maxout": maxout,
    "mish": F.mish,
    "relu": torch.relu,
    "relu6": F.relu6,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "softplus": F.softplus,
    "tanh": torch.tanh,
}
_NAMES = {id(function): name for name, function in ACTIVATIONS.items()}
RECTIFIERS = frozenset({"elu", "gelu", "leaky_relu", "leakyrelu", "lwta", "mish", "prelu", "relu", "relu6", "silu"})


def resolve_activation(activation: str | Activation) -> Activation:
    """Look up an activation by name; callables, such as modules, are returned unchanged."""
    if isinstance(activation, str):
        if activation not in ACTIVATIONS:
            raise unknown("activation", activation, ACTIVATIONS)
        return ACTIVATIONS[activation]
    if not callable(activation):
        raise UserError(f"activation must be a name or a callable, got {activation!r}")
    return activation


def pieces_of(activation: Activation) -> int:
    """How many values before the activation belong to one after it: 2 for maxout, 1 for all others."""
    return 2 if activation is maxout else 1


def without_pieces(activation: Activation, owner: str) -> Activation:
    """Refuse maxout where each unit has a single value before the activation."""
    if activation is maxout:
        raise UserError(f"{owner} does not take maxout, which needs two values per unit; PlainStack, HighwayStack do")
    return activation


def activation_name(activation: Activation) -> str:
    """The name of a resolved activation, or the name of the callable itself."""
    if (name := _NAMES.get(id(activation))) is not None:
        return name
    return getattr(activation, "__name__", type(activation).__name__)
