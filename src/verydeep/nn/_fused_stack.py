"""Stacks that run through fused kernels where they can, and through torch's operations everywhere else."""

import math
from collections.abc import Collection, Sequence
from functools import lru_cache, partial
from itertools import accumulate

import torch
from torch import Tensor

from verydeep import kernels
from verydeep.nn._activations import Activation, activation_name
from verydeep.nn._backend import Backend, check_backend, is_fused
from verydeep.nn._recompute import run_steps
from verydeep.nn._stack import Stack


class FusedStack(Stack):
    """A stack whose layers, one after the other, are one operator; `_layer` defines what it computes.

    Attributes:
        recompute: Whether to keep the input of every sqrt(depth)-th layer only, and compute the others again in the
            backward pass: the memory of about 2 sqrt(depth) layers instead of depth, for one more forward pass.
    """

    def __init__(
        self, width: int, depth: int, maps: int, activation: str | Activation, init: str, backend: Backend
    ) -> None:
        super().__init__(width, depth, maps, activation, init)
        check_backend(backend)
        self.backend = backend
        self.recompute = False

    def forward(self, x: Tensor, closed: Collection[int] = (), first: int = 0) -> Tensor:
        """The output of the last layer for x, the input of layer `first`; closed layers copy their input."""
        self._check(x, closed, first)
        needs_grad = torch.is_grad_enabled() and any(t.requires_grad for t in (x, self.weight, self.bias))
        layers = _open(self.depth, frozenset(closed), first)
        if not layers:
            return x
        if not self._fused(x):
            return self._reference(x, layers, needs_grad and self.recompute)
        rows, name, numbers = x.reshape(-1, self.width), activation_name(self.activation), layer_numbers(layers)
        if not needs_grad:
            return kernels.infer_stack(rows, self.weight, self.bias, numbers, name).view(x.shape)
        segment = _segment(len(layers), self.recompute)
        return kernels.train_stack(rows, self.weight, self.bias, numbers, name, segment).view(x.shape)

    @torch.no_grad()
    def states(self, x: Tensor, closed: Collection[int] = ()) -> list[Tensor]:
        """Its input and the output of every layer: item n is the input of layer n, to start from with `first`.

        Costs little more than a forward pass, and gives the same bits; without gradients.
        """
        self._check(x, closed)
        layers = _open(self.depth, frozenset(closed), 0)
        if not layers or not self._fused(x):
            return self._reference_states(x, closed)
        rows, name, numbers = x.reshape(-1, self.width), activation_name(self.activation), layer_numbers(layers)
        found = kernels.stack_states(rows, self.weight, self.bias, numbers, name).view(-1, *x.shape)
        passed = accumulate((layer not in closed for layer in range(self.depth)), initial=0)
        return [found[count] for count in passed]

    def _reference_states(self, x: Tensor, closed: Collection[int]) -> list[Tensor]:
        states = [x]
        for layer, parameters in enumerate(zip(self.weight.unbind(), self.bias.unbind(), strict=True)):
            states.append(states[-1] if layer in closed else self._layer(states[-1], *parameters))
        return states

    def _fused(self, x: Tensor) -> bool:
        return is_fused(self.backend, self._fusible(), [x, self.weight, self.bias])

    def _fusible(self) -> bool:
        return activation_name(self.activation) in ("tanh", "relu")

    def _reference(self, x: Tensor, layers: Sequence[int], recompute: bool) -> Tensor:
        """Layer by layer, in torch's operations."""
        parameters = list(zip(self.weight.unbind(), self.bias.unbind(), strict=True))  # an index: a quadratic backward
        steps = [partial(self._layer, weight=w, bias=b) for w, b in (parameters[layer] for layer in layers)]
        return run_steps(steps, x, recompute)

    def _layer(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """One layer's output."""
        raise NotImplementedError


@lru_cache(maxsize=128)
def _open(depth: int, closed: frozenset[int], first: int) -> tuple[int, ...]:
    return tuple(layer for layer in range(first, depth) if layer not in closed)


@lru_cache(maxsize=128)
def layer_numbers(layers: tuple[int, ...]) -> Tensor:
    """Layers as the kernels want them; the same tensor every time."""
    return torch.tensor(layers, dtype=torch.int64)


def _segment(layers: int, recompute: bool) -> int:
    """How many layers lie between two whose inputs are kept."""
    return max(2, math.isqrt(layers)) if recompute else 1
