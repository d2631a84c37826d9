"""The weights inside the page: float32, or float16 for a large network whose answers stay the same."""

from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from verydeep.cpu import cpu_settings
from verydeep.data import Task
from verydeep.models import Network
from verydeep.report.explore._inputs import encode

LARGE = 1_000_000  # bytes of float32
_SAME = 0.01  # of a standard deviation of a regression's targets


def describe_weights(
    weights: np.ndarray, model: Network, x: Tensor, outputs: Tensor, task: Task, large: int = LARGE
) -> dict[str, Any]:
    """Encode the weights.

    Args:
        weights: All weights, float32.
        model: The network.
        x: The samples of the page, prepared.
        outputs: What the network says about them.
        task: What it predicts.
        large: From how many bytes on float16 is considered.
    """
    if weights.nbytes > large and _rounding_keeps_answers(weights, model, x, outputs, task):
        return {"precision": "float16", "weights": encode(weights.astype("<f2"))}
    return {"precision": "float32", "weights": encode(weights.astype("<f4"))}


def _rounding_keeps_answers(weights: np.ndarray, model: Network, x: Tensor, outputs: Tensor, task: Task) -> bool:
    if not np.abs(weights).max(initial=0) < np.finfo(np.float16).max:
        return False
    rounded = deepcopy(model)
    with cpu_settings(), torch.inference_mode():
        for parameter in rounded.parameters():
            parameter.copy_(parameter.half().float())
        found = torch.cat([rounded(batch).float() for batch in x.float().split(100)])
    if task.kind == "classification":
        return bool((found.argmax(1) == outputs.argmax(1)).all())
    if task.kind == "multilabel":
        return bool(((found > 0) == (outputs > 0)).all())
    return bool(((found - outputs).abs() < _SAME).all())
