"""Activation functions by name, and those whose weights are initialised by He's scheme."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep.errors import UserError, unknown

Activation = Callable[[Tensor], Tensor]


def _identity(x: Tensor) -> Tensor:
    return x


ACTIVATIONS: dict[str, Activation] = {
    "elu": F.elu,
    "gelu": F.gelu,
    "hardsigmoid": F.hardsigmoid,
    "identity": _identity,
    "leaky_relu": F.leaky_relu,
    "mish": F.mish,
    "relu": torch.relu,
    "relu6": F.relu6,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "softplus": F.softplus,
    "tanh": torch.tanh,
}
_NAMES = {id(function): name for name, function in ACTIVATIONS.items()}
RECTIFIERS = frozenset({"elu", "gelu", "leaky_relu", "leakyrelu", "mish", "prelu", "relu", "relu6", "silu"})


def resolve_activation(activation: str | Activation) -> Activation:
    """Look up an activation by name; callables, such as modules, are returned unchanged."""
    if isinstance(activation, str):
        if activation not in ACTIVATIONS:
            raise unknown("activation", activation, ACTIVATIONS)
        return ACTIVATIONS[activation]
    if not callable(activation):
        raise UserError(f"activation must be a name or a callable, got {activation!r}")
    return activation


def activation_name(activation: Activation) -> str:
    """The name of a resolved activation, or the name of the callable itself."""
    if (name := _NAMES.get(id(activation))) is not None:
        return name
    return getattr(activation, "__name__", type(activation).__name__)
