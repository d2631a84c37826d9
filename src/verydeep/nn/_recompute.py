"""Activation checkpointing: activations are recomputed instead of kept, so depth costs time, not memory."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

Step = Callable[[Tensor], Tensor]


def run_steps(steps: Sequence[Step], x: Tensor, recompute: bool) -> Tensor:
    """Apply the steps one after the other.

    With `recompute`, only the input of each segment is kept for the backward pass: n steps in segments of sqrt(n) need
    the memory of about 2 sqrt(n) steps and one more forward pass.
    """
    if not (recompute and torch.is_grad_enabled()):
        return _apply(steps, x)
    length = math.isqrt(len(steps)) + 1
    for first in range(0, len(steps), length):
        segment = steps[first : first + length]
        x = checkpoint(_apply, segment, x, use_reentrant=False, context_fn=partial(_contexts, segment))
    return x


def _contexts(steps: Sequence[Step]) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    return nullcontext(), _frozen_statistics(steps)


@contextmanager
def _frozen_statistics(steps: Sequence[Step]) -> Iterator[None]:
    """Keep batch normalisation from counting a batch again when it is recomputed."""
    modules = [step.func if isinstance(step, partial) else step for step in steps]
    norms = [n for m in modules if isinstance(m, nn.Module) for n in m.modules() if isinstance(n, _BatchNorm)]
    before = [(norm.momentum, norm.num_batches_tracked) for norm in norms]
    for norm in norms:
        norm.momentum = 0.0  # leaves the running statistics unchanged
        norm.num_batches_tracked = None
    try:
        yield
    finally:
        for norm, (momentum, tracked) in zip(norms, before, strict=True):
            norm.momentum = momentum
            norm.num_batches_tracked = tracked


def _apply(steps: Sequence[Step], x: Tensor) -> Tensor:
    for step in steps:
        x = step(x)
    return x
