"""Stacks that run through fused kernels where they can, and through torch's operations everywhere else."""

import math
from collections.abc import Callable, Collection, Sequence
from functools import cache, lru_cache, partial
from itertools import accumulate

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from verydeep import kernels
from verydeep.nn._activations import Activation, activation_name, is_tanh_or_relu
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
        weight, bias = self.weight, self.bias
        needs_grad = torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad or bias.requires_grad)
        if not self._fused(x):
            layers = tuple(layer for layer in range(first, self.depth) if layer not in closed)
            return self._reference(x, layers, needs_grad and self.recompute)
        layers, numbers = _open(self.depth, frozenset(closed), first)
        if not layers:
            return x
        rows = x if x.dim() == 2 else x.reshape(-1, self.width)
        name = activation_name(self.activation)
        if needs_grad:
            y = kernels.train_stack(rows, weight, bias, numbers(), name, _segment(len(layers), self.recompute))
        else:
            y = kernels.infer_stack(rows, weight, bias, numbers(), name)
        return y if x.dim() == 2 else y.view(x.shape)

    def between(self, first: nn.Module, last: nn.Module, x: Tensor, closed: Collection[int] = ()) -> Tensor:
        """The whole network: `last(stack(activation(first(x))))` for x of shape `(batch, input)`.

        Where kernels can, one operator does it all; not if x needs a gradient, someone watches one of the modules, or
        one around the stack is no plain `nn.Linear`.
        """
        shut, parameters = frozenset(closed), self._parameters_between(first, last)
        if len(shut) == self.depth or not self._takes(first, last, x, parameters):
            return last(self(self.activation(first(x)), closed))  # type: ignore[no-any-return]
        if shut:
            self._check_closed(closed)
        _layers, numbers = _open(self.depth, shut, 0)
        needs_grad = torch.is_grad_enabled() and any(parameter.requires_grad for parameter in parameters)
        run = kernels.train_mlp if needs_grad else kernels.infer_mlp
        return run(x, numbers(), activation_name(self.activation), *parameters)

    def descend(
        self, first: nn.Module, last: nn.Module, x: Tensor, y: Tensor, scale: float
    ) -> tuple[Tensor, Tensor] | None:
        """Backpropagate `scale` times the sum of the cross-entropies of `between` for classes y.

        Without autograd, which takes as long as several layers; the bits are the same. Only where kernels run the whole
        network and nobody watches its gradients.

        Returns:
            The sum and the logits, or None: nothing was done.
        """
        parameters = self._parameters_between(first, last)
        free = len(set(map(id, parameters))) == len(parameters) and all(map(_is_free, parameters))
        if not (free and torch.is_grad_enabled() and self._takes(first, last, x, parameters)):
            return None
        _layers, numbers = _open(self.depth, frozenset(), 0)
        name = activation_name(self.activation)
        loss, logits, gradients = kernels.backward_cross_entropy(x, y, scale, numbers(), name, *parameters)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        return loss, logits

    def _parameters_between(self, first: nn.Module, last: nn.Module) -> tuple[Tensor, ...]:
        """Those of the stack, and of the layers around it if kernels know them; fewer than six otherwise."""
        if not (type(first) is type(last) is nn.Linear):
            return self.weight, self.bias
        ends = (first.weight, first.bias, last.weight, last.bias)
        return self.weight, self.bias, *(parameter for parameter in ends if parameter is not None)

    def _takes(self, first: nn.Module, last: nn.Module, x: Tensor, parameters: tuple[Tensor, ...]) -> bool:
        """Whether kernels run all of a network together."""
        return (
            type(first) is type(last) is nn.Linear
            and len(parameters) == 6
            and is_fused(self.backend, self._fusible(), [x, *parameters])
            and (x.dim(), first.out_features, last.in_features) == (2, self.width, self.width)
            and x.shape[1] == first.in_features
            and kernels.inputs_suit(first.in_features)
            and not (self.recompute or x.requires_grad)
            and not is_watched(first, self, last)
        )

    @torch.no_grad()
    def states(self, x: Tensor, closed: Collection[int] = ()) -> list[Tensor]:
        """Its input and the output of every layer: item n is the input of layer n, to start from with `first`.

        Costs little more than a forward pass, and gives the same bits; without gradients.
        """
        self._check(x, closed)
        layers, numbers = _open(self.depth, frozenset(closed), 0)
        if not layers or not self._fused(x):
            return self._reference_states(x, closed)
        rows, name = x.reshape(-1, self.width), activation_name(self.activation)
        found = kernels.stack_states(rows, self.weight, self.bias, numbers(), name).view(-1, *x.shape)
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
        return is_tanh_or_relu(self.activation)

    def _reference(self, x: Tensor, layers: Sequence[int], recompute: bool) -> Tensor:
        """Layer by layer, in torch's operations."""
        parameters = list(zip(self.weight.unbind(), self.bias.unbind(), strict=True))  # an index: a quadratic backward
        steps = [partial(self._layer, weight=w, bias=b) for w, b in (parameters[layer] for layer in layers)]
        return run_steps(steps, x, recompute)

    def _layer(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """One layer's output."""
        raise NotImplementedError


@lru_cache(maxsize=128)
def _open(depth: int, closed: frozenset[int], first: int) -> tuple[tuple[int, ...], Callable[[], Tensor]]:
    """The layers to go through, and how to get them as the kernels want them."""
    layers = tuple(layer for layer in range(first, depth) if layer not in closed)
    return layers, cache(partial(layer_numbers, layers))


def layer_numbers(layers: tuple[int, ...]) -> Tensor:
    """Layers as the kernels want them; kept from an evaluation, they must do for training too."""
    with torch.inference_mode(False):
        return torch.tensor(layers, dtype=torch.int64, device="cpu")


def _segment(layers: int, recompute: bool) -> int:
    """How many layers lie between two whose inputs are kept."""
    return max(2, math.isqrt(layers)) if recompute else 1


def _is_free(parameter: Tensor) -> bool:
    """Whether a gradient can be put where there is none, with nobody to tell."""
    told = parameter._backward_hooks or parameter._post_accumulate_grad_hooks
    return parameter.is_leaf and parameter.requires_grad and parameter.grad is None and not told


def is_watched(*modules: nn.Module) -> bool:
    """Whether someone wants to see what goes in and out: by a hook, or a forward method of their own."""
    if _has_any_global_hook():
        return True
    for module in modules:
        if module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks:
            return True
        if "forward" in vars(module):
            return True
    return False
