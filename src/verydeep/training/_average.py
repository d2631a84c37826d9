"""A moving average of the weights, measured and kept in place of the last ones."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

_YOUNG = 9  # while it is shorter than the half-life allows, the average covers about the last ninth of training


class Average:
    """Follows a module's weights and buffers exponentially.

    Args:
        model: Whose weights.
        half_life: After how many steps a weight's share in the average has halved.
    """

    def __init__(self, model: nn.Module, half_life: float) -> None:
        named = dict(model.named_parameters()) | dict(model.named_buffers())
        self.live = {name: value.detach() for name, value in named.items() if value.is_floating_point()}
        self.kept = {name: value.clone() for name, value in self.live.items()}
        self.rate = 1 - 0.5 ** (1 / half_life)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint must hold."""
        return {f"average.{name}": value for name, value in self.kept.items()}

    def follow(self, step: int) -> None:
        """After a step, numbered from 0: move towards the weights; the first step forgets the initial ones."""
        share = max(self.rate, _YOUNG / (_YOUNG + step))
        torch._foreach_lerp_(list(self.kept.values()), list(self.live.values()), share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The module has the average for its weights."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def _exchange(self) -> None:
        kept, live = list(self.kept.values()), list(self.live.values())
        before = [value.clone() for value in live]
        torch._foreach_copy_(live, kept)
        torch._foreach_copy_(kept, before)
