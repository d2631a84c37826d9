"""The inputs of a network: a tensor, several of them, or a dictionary by the names of the network's arguments."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

Inputs = Tensor | Mapping[str, Any] | tuple[Any, ...]
"""A tensor, a tuple of positional arguments, or a dictionary of keyword arguments."""


def call_model(model: nn.Module | Callable[..., Any], inputs: Inputs) -> Any:  # noqa: ANN401 - whatever it returns
    """Call a network with a batch of inputs.

    Args:
        model: The network.
        inputs: A tensor is its only argument; a tuple holds several, a dictionary holds them by name.
    """
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, tuple) else model(inputs)


def batch_length(inputs: Inputs) -> int:
    """The number of samples: the length of the first tensor."""
    return next((len(value) for value in _values(inputs) if isinstance(value, Tensor) and value.dim()), 0)


def map_tensors(function: Callable[[Tensor], Tensor], inputs: Any) -> Any:  # noqa: ANN401 - of the same structure
    """The same inputs with a function applied to every tensor."""
    if isinstance(inputs, Tensor):
        return function(inputs)
    if isinstance(inputs, Mapping):
        return {name: map_tensors(function, value) for name, value in inputs.items()}
    if isinstance(inputs, tuple | list):
        return type(inputs)(map_tensors(function, value) for value in inputs)
    return inputs


def move_inputs(inputs: Any, device: torch.device | str, dtype: torch.dtype | None = None) -> Any:  # noqa: ANN401
    """The same inputs on a device.

    Args:
        inputs: The inputs.
        device: The device.
        dtype: The type of floating-point inputs; by default, they keep theirs.
    """
    return map_tensors(lambda t: t.to(device, dtype if t.is_floating_point() else None), inputs)


def first_of(inputs: Any, samples: int) -> Any:  # noqa: ANN401 - of the same structure
    """The first samples of a batch."""
    return map_tensors(lambda t: t[:samples] if t.dim() else t, inputs)


def _values(inputs: Inputs) -> list[Any]:
    if isinstance(inputs, Mapping):
        return list(inputs.values())
    return list(inputs) if isinstance(inputs, tuple) else [inputs]
