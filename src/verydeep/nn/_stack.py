"""What stacks of equal fully connected layers share.

One weight tensor and one bias tensor hold all layers, so an optimiser updates a thousand layers in one operation.
"""

from collections.abc import Collection
from functools import partial
from itertools import accumulate

import torch
from torch import Tensor, nn

from verydeep import kernels
from verydeep.errors import UserError
from verydeep.kernels import Backend
from verydeep.nn._activations import Activation, activation_name, pieces_of, resolve_activation
from verydeep.nn._highway_linear import check_width
from verydeep.nn._init import init_weight
from verydeep.nn._layer import Unscriptable, check_closed
from verydeep.nn._recompute import run_steps


class Stack(Unscriptable, nn.Module):
    """`depth` layers of the same width. The affine maps of a layer (H, then T, then C) are concatenated in its matrix.

    Attributes:
        maps: Number of affine maps per layer; H with maxout has two.
        weight: `(layer, map * block, width)`.
        bias: `(layer, map * block)`.
    """

    def __init__(
        self,
        width: int,
        depth: int,
        gates: int,
        activation: str | Activation,
        init: str,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        if width < 1 or depth < 1:
            raise UserError(f"a stack needs a width and a depth of at least 1, got width {width} and depth {depth}")
        self.activation = resolve_activation(activation)
        self.pieces = pieces_of(self.activation)
        maps = self.pieces + gates
        self.width, self.depth, self.maps, self.init = width, depth, maps, init
        self.weight = nn.Parameter(torch.empty(depth, maps * width, width, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(depth, maps * width, device=device, dtype=dtype))

    @property
    def highway_depth(self) -> int:
        """The number of highway layers, which can be closed and traced."""
        return self.depth

    @property
    def closable_depth(self) -> int:
        """The number of layers that can be closed."""
        return self.highway_depth

    def reset_parameters(self) -> None:
        """Reset the weights by `init` and the biases to 0."""
        init_weight(self.weight, self.width, self.width, self.activation, self.init)
        nn.init.zeros_(self.bias)

    def split(self, z: Tensor) -> list[Tensor]:
        """The values of H, then those of each gate, from a layer's product."""
        gates = self.maps - self.pieces
        return list(z.split([self.pieces * self.width, *([self.width] * gates)], -1))

    def gate_part(self, number: int) -> slice:
        """The rows of gate `number` in a layer's matrix, counted from 0: T, then C."""
        first = (self.pieces + number) * self.width
        return slice(first, first + self.width)

    def layer_parameters(self) -> list[tuple[Tensor, Tensor]]:
        """Weight and bias of every layer; `unbind`, because indexing would make the backward pass quadratic."""
        return list(zip(self.weight.unbind(), self.bias.unbind(), strict=True))

    def _check(self, x: Tensor, closed: Collection[int], first: int = 0) -> frozenset[int]:
        """Check the arguments of a call; the numbers of the layers to close."""
        check_width(self, x, self.width)
        if not 0 <= first <= self.depth:
            raise UserError(f"cannot start at layer {first}: the layers are numbered 0 to {self.depth - 1}")
        return check_closed(closed, self.closable_depth, self)

    def extra_repr(self) -> str:
        return f"width={self.width}, depth={self.depth}, activation={activation_name(self.activation)}"


class FeedForwardStack(Stack):
    """A stack in which each layer takes the output of the one before: `x = layer(x)`, `depth` times.

    `_layer` defines a layer in torch's operations. Where the fused kernels can run, one call of them computes the same.

    Attributes:
        recompute: Whether to keep the input of every sqrt(depth)-th layer only and recompute the others in the backward
            pass: the memory of about 2 sqrt(depth) layers instead of depth, for one more forward pass.
    """

    def __init__(
        self,
        width: int,
        depth: int,
        gates: int,
        activation: str | Activation,
        init: str,
        backend: Backend,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__(width, depth, gates, activation, init, device, dtype)
        kernels.check_backend(backend)
        self.backend = backend
        self.recompute = False

    @property
    def activations(self) -> kernels.Activations:
        """The activation of the block states, then that of the gates if there are any."""
        return (self.activation,)

    @property
    def formula(self) -> str:
        """The name of a layer's formula in the kernels: that of the activation."""
        return activation_name(self.activation)

    def _layer(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """The output of one layer."""
        raise NotImplementedError

    def forward(self, x: Tensor, closed: Collection[int] = (), first: int = 0) -> Tensor:
        """The output of the last layer.

        Args:
            x: The input of layer `first`; the last dimension is the width.
            closed: Highway or residual layers to close, counted from 0: they copy their input.
            first: The first layer to compute, counted from 0.
        """
        closed = self._check(x, closed, first)
        if self._can_run_fused(x):
            return self._fused(x, closed, first)
        steps = [
            partial(self._layer, weight=weight, bias=bias)
            for layer, (weight, bias) in enumerate(self.layer_parameters())
            if layer >= first and layer not in closed
        ]
        return run_steps(steps, x, self.recompute)

    def segment(self, x: Tensor, first: int, last: int) -> Tensor:
        """The output of layer `last - 1` for the input x of layer `first`, counted from 0."""
        if self._can_run_fused(x):
            return self._fused(x, range(last, self.depth), first)
        parameters = self.layer_parameters()[first:last]
        return run_steps([partial(self._layer, weight=w, bias=b) for w, b in parameters], x, self.recompute)

    @torch.no_grad()
    def states(self, x: Tensor, closed: Collection[int] = ()) -> list[Tensor]:
        """The input of every layer and the output of the last, without gradients.

        Item n is the input of layer n, with which `forward` can start at `first=n`. It costs about one forward pass and
        gives bit-identical values.
        """
        closed = self._check(x, closed)
        if self._can_run_fused(x):
            return self._fused_states(x, closed)
        states = [x]
        for layer, parameters in enumerate(self.layer_parameters()):
            states.append(states[-1] if layer in closed else self._layer(states[-1], *parameters))
        return states

    def _can_run_fused(self, x: Tensor) -> bool:
        return kernels.can_run_stack(self.backend, self.activations, x, self.weight, self.bias)

    def _fused(self, x: Tensor, closed: Collection[int], first: int) -> Tensor:
        layers = kernels.open_layers(self.depth, closed, first)
        if len(layers) == 0:
            return x
        rows = x if x.dim() == 2 else x.reshape(-1, self.width)
        y = kernels.run_stack(rows, self.weight, self.bias, layers, self.formula, self.recompute)
        return y if x.dim() == 2 else y.view(x.shape)

    def _fused_states(self, x: Tensor, closed: Collection[int]) -> list[Tensor]:
        layers = kernels.open_layers(self.depth, closed)
        if len(layers) == 0:
            return [x] * (self.depth + 1)
        rows = x.reshape(-1, self.width)
        states = kernels.stack_states(rows, self.weight, self.bias, layers, self.formula).view(-1, *x.shape)
        open_before = accumulate((layer not in closed for layer in range(self.depth)), initial=0)
        return [states[count] for count in open_before]


def copy_parameter(values: Tensor) -> nn.Parameter:
    """A new parameter with a copy of these values."""
    return nn.Parameter(values.detach().clone())


def common_width(sizes: list[tuple[int, int]]) -> int:
    """The width that all layers have on both sides."""
    widths = {width for pair in sizes for width in pair}
    if len(widths) != 1:
        got = f"widths {sorted(widths)}" if widths else "no layers"
        raise UserError(f"a stack needs at least one layer, and all must have the same width; got {got}")
    return widths.pop()
