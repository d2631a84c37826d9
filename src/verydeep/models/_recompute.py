"""Activations that are computed again instead of kept: depth then costs time, not memory."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

Step = Callable[[Tensor], Tensor]


def run_steps(steps: Sequence[Step], x: Tensor, recompute: bool) -> Tensor:
    """Apply the steps one after the other.

    With `recompute` only the input of each segment is kept for the backward pass: n steps in segments of sqrt(n) need
    the memory of about 2 sqrt(n) steps, and one more forward pass.
    """
    if not (recompute and torch.is_grad_enabled()):
        return _apply(steps, x)
    length = math.isqrt(len(steps)) + 1
    for first in range(0, len(steps), length):
        x = checkpoint(_apply, steps[first : first + length], x, use_reentrant=False)
    return x


def _apply(steps: Sequence[Step], x: Tensor) -> Tensor:
    for step in steps:
        x = step(x)
    return x
