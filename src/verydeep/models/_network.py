"""The base class of networks: a configuration, numbered highway layers, and a classifier."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.nn import HighwayLayer, Trace, Unscriptable, check_closed, run_steps


class Network(Unscriptable, nn.Module):
    """Base class of the named networks. Each is built from a configuration, with which it can be saved and rebuilt.

    Attributes:
        config: The frozen dataclass it was built from.
        classifier: The last linear layer; None if the network ends in global pooling.

    Example:
        >>> from verydeep.models import Network, create_model
        >>> model = create_model("highway-mnist-16")
        >>> isinstance(model, Network), model.input_shape, model.highway_depth
        (True, (1, 28, 28), 8)
    """

    config: Any
    classifier: nn.Linear | None

    def forward(self, x: Tensor, closed: Collection[int] = ()) -> Tensor:
        """The logits, `(batch, class)`.

        Args:
            x: Samples, `(batch, *input_shape)`.
            closed: Highway layers, or layers of a residual stack, to close, counted from 0: they copy their input.
        """
        raise NotImplementedError

    def trace(self, x: Tensor, closed: Collection[int] = ()) -> tuple[Trace, ...]:
        """The block state, gates and block output of each highway layer for x, without gradients.

        Layers of one network may differ in shape, so there is one `Trace` per layer: `trace(x)[3].t` are the transform
        gates of the fourth. Nothing is stored in the network.

        Args:
            x: Samples, `(batch, *input_shape)`.
            closed: Highway layers to close, counted from 0, as in `forward`.
        """
        raise NotImplementedError

    def hidden_layers(self) -> list[str]:
        """The names of the hidden layers whose values `forward_hidden` returns, in order."""
        return []

    def forward_hidden(self, x: Tensor, layers: Collection[str]) -> tuple[Tensor, dict[str, Tensor]]:
        """The logits and, from the same pass, the values of some hidden layers.

        Args:
            x: Samples, `(batch, *input_shape)`.
            layers: Their names, some of `hidden_layers()`.
        """
        raise UserError(f"{type(self).__name__} does not return the values of hidden layers")

    def reset_parameters(self) -> None:
        """Initialise all weights and biases again, e.g. after `to_empty` of a network that was created on "meta"."""
        raise NotImplementedError

    def checkpoint_activations(self) -> None:
        """Enable activation checkpointing: the backward pass recomputes most activations to save memory."""
        raise UserError(f"{type(self).__name__} cannot recompute activations")

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self.config.input_shape  # type: ignore[no-any-return]

    @property
    def highway_depth(self) -> int:
        """The number of highway layers, which can be closed and traced."""
        raise NotImplementedError

    @property
    def closable_depth(self) -> int:
        """The number of layers that `closed` can name."""
        return self.highway_depth

    def _input_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes that a sample may have."""
        return (self.input_shape,)

    def _check(self, x: Tensor, closed: Collection[int]) -> frozenset[int]:
        """Check the arguments of a call; the numbers of the layers to close."""
        if x.shape[1:] not in self._input_shapes():
            shapes = " or ".join(f"(batch, {', '.join(map(str, shape))})" for shape in self._input_shapes())
            raise UserError(f"the network takes x of shape {shapes}, got {tuple(x.shape)}")
        return check_closed(closed, self.closable_depth, self)


def run_to_layers(
    steps: Sequence[Callable[[Tensor], Tensor]],
    names: Sequence[str],
    x: Tensor,
    layers: Collection[str],
    recompute: bool,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Run steps one after the other: the output of the last, and those of the steps of some names."""
    values: dict[str, Tensor] = {}
    first = 0
    for end, name in enumerate(names, 1):
        if name in layers:
            values[name] = x = run_steps(steps[first:end], x, recompute)
            first = end
    return run_steps(steps[first:], x, recompute), values


@torch.no_grad()
def trace_layers(layers: Iterable[nn.Module], x: Tensor, closed: Collection[int]) -> tuple[Trace, ...]:
    """The traces of the highway layers among layers that are applied one after the other."""
    traces: list[Trace] = []
    for layer in layers:
        if isinstance(layer, HighwayLayer):
            traces.append(layer.trace(x, closed=len(traces) in closed))
            x = traces[-1].y
        else:
            x = layer(x)
    return tuple(traces)
