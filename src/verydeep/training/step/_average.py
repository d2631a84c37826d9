"""An exponential moving average of the weights, evaluated and saved in place of the last weights."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn

_WINDOW = 9  # until it is as long as the half-life asks for, the average covers about the last ninth of training


class WeightAverage:
    """Follows the floating-point weights and buffers of a module.

    Args:
        model: The module whose weights are averaged.
        half_life: The number of steps after which a weight's share in the average has halved.
    """

    def __init__(self, model: nn.Module, half_life: float) -> None:
        named = dict(model.named_parameters()) | dict(model.named_buffers())
        self.live = {name: value.detach() for name, value in named.items() if value.is_floating_point()}
        self.averaged = {name: value.clone() for name, value in self.live.items()}
        self.rate = 1 - 0.5 ** (1 / half_life)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The tensors that a checkpoint must hold."""
        return {f"average.{name}": value for name, value in self.averaged.items()}

    def update(self, step: int) -> None:
        """Move towards the weights after a step, counted from 0. The first step replaces the initial weights."""
        share = max(self.rate, _WINDOW / (_WINDOW + step))
        torch._foreach_lerp_(list(self.averaged.values()), list(self.live.values()), share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The module has the averaged weights inside this block."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def _exchange(self) -> None:
        averaged, live = list(self.averaged.values()), list(self.live.values())
        before = [value.clone() for value in live]
        torch._foreach_copy_(live, averaged)
        torch._foreach_copy_(averaged, before)


def averaged_weights(average: WeightAverage | None) -> AbstractContextManager[None]:
    """The module has the weights that are evaluated and saved inside this block: the average where there is one."""
    return nullcontext() if average is None else average.in_place()
