"""A model as a function from samples to logits: compiled or not, in float32 or bfloat16."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.training._config import TrainConfig

Forward = Callable[[Tensor], Tensor]


def make_forward(model: nn.Module, config: TrainConfig, device: torch.device) -> Forward:
    """The model as the configuration wants it computed; the model itself if it asks for nothing special."""
    forward: Forward = torch.compile(model) if config.compile else model
    if config.precision == "float32":
        return forward

    def in_low_precision(x: Tensor) -> Tensor:
        with autocast(config, device):
            return forward(x)

    return in_low_precision


def autocast(config: TrainConfig, device: torch.device) -> AbstractContextManager[object]:
    """The context in which the configuration's precision holds."""
    return nullcontext() if config.precision == "float32" else torch.autocast(device.type, torch.bfloat16)


def with_checked_shape(forward: Forward, classes: int) -> Forward:
    """The same function, but it refuses outputs that are not logits of at least `classes` classes."""

    def checked(x: Tensor) -> Tensor:
        logits = forward(x)
        if logits.dim() != 2 or logits.shape[1] < classes:
            shape = tuple(logits.shape)
            raise UserError(f"the module must return logits of shape (batch, {classes}), one per class; got {shape}")
        return logits

    return checked
