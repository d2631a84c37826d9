"""The base class of networks: a configuration, numbered highway layers, and a classifier."""

from collections.abc import Collection
from typing import Any

from torch import Tensor, nn

from verydeep.errors import UserError


class Network(nn.Module):
    """A network built from a configuration, so that it can be saved, rebuilt, and changed by changing its description.

    Attributes:
        config: The frozen dataclass it was built from.
        classifier: The last linear layer; None if the network ends in global pooling.
    """

    config: Any
    classifier: nn.Linear | None

    def forward(self, x: Tensor, closed: Collection[int] = ()) -> Tensor:
        """The logits, `(batch, class)`; highway layers in `closed`, numbered from 0, copy their input."""
        raise NotImplementedError

    def checkpoint_activations(self) -> None:
        """From now on, keep few activations and recompute the others in the backward pass."""
        raise UserError(f"{type(self).__name__} cannot recompute activations")

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        raise NotImplementedError

    @property
    def highway_depth(self) -> int:
        """The number of highway layers that can be closed."""
        raise NotImplementedError

    def _check(self, x: Tensor, closed: Collection[int]) -> None:
        if tuple(x.shape[1:]) != self.input_shape:
            want = ", ".join(map(str, self.input_shape))
            raise UserError(f"the network takes x of shape (batch, {want}), got {tuple(x.shape)}")
        wrong = sorted(layer for layer in closed if not 0 <= layer < self.highway_depth)
        if wrong and self.highway_depth == 0:
            raise UserError(f"cannot close layer {wrong[0]}: this network has no highway layers")
        if wrong:
            raise UserError(f"cannot close layer {wrong[0]}: highway layers are numbered 0 to {self.highway_depth - 1}")
