"""A model as a function from samples to logits: compiled or not, in float32 or bfloat16."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from verydeep.data import Task
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


def with_checked_shape(forward: Forward, task: Task) -> Forward:
    """The same function, but it refuses outputs whose shape does not suit the task."""
    classes = task.kind == "classification"

    def checked(x: Tensor) -> Tensor:
        outputs = forward(x)
        enough = outputs.dim() == 2 and (
            outputs.shape[1] == task.outputs or (classes and outputs.shape[1] > task.outputs)
        )
        if not enough:
            what = "logits" if task.kind != "regression" else "numbers"
            noun = {"classification": "class", "regression": "target", "multilabel": "label"}[task.kind]
            raise UserError(
                f"the module must return {what} of shape (batch, {task.outputs}), one per {noun}; "
                f"got {tuple(outputs.shape)}"
            )
        return outputs

    return checked
