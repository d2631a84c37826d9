"""The stack of fully connected highway layers: the highway networks of Section 3.1, of any depth."""

from collections.abc import Collection, Sequence
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep import kernels
from verydeep.errors import UserError, unknown
from verydeep.kernels import Backend
from verydeep.nn._activations import Activation, resolve_activation, without_pieces
from verydeep.nn._affine import CARRIES, Carry
from verydeep.nn._highway_linear import HighwayLinear
from verydeep.nn._init import suggest_gate_bias
from verydeep.nn._layer import Trace, closed_trace, open_trace, stack_traces
from verydeep.nn._stack import FeedForwardStack, common_width, copy_parameter
from verydeep.nn.functional import highway


class HighwayStack(FeedForwardStack):
    """`depth` fully connected highway layers `y = H(x) * T(x) + x * C(x)` (Equation 2) in one module.

    It computes the same as `depth` layers of `HighwayLinear`. All layers share one weight tensor and one bias tensor,
    which makes deep stacks faster on the CPU; `to_layers` and `from_layers` convert between the two forms.

    Args:
        width: Number of blocks per layer.
        depth: Number of layers; 10,000 have been trained.
        activation: The activation of the block states: a name ("tanh", "relu", "lwta", "maxout", ...) or a callable.
        gate_bias: Initial bias of all transform gates; `suggest_gate_bias(depth, "linear")` by default.
        carry: "coupled" (C = 1 - T) or "independent" (C has its own weights).
        gate_activation: The activation of the gates, with values between 0 and 1.
        carry_bias: Initial bias of independent carry gates; -gate_bias by default.
        init: "auto", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "orthogonal", "sparse", "laplace" or
            "scaled_normal"; "auto" is He's normal for rectifiers and Glorot's uniform for other activations.
        backend: "auto", "fused" (raises an error where the kernels cannot run) or "reference".
        device: Device of the parameters.
        dtype: Data type of the parameters.

    Example:
        >>> import torch
        >>> from verydeep.nn import HighwayStack
        >>> stack, x = HighwayStack(width=8, depth=100), torch.randn(5, 8)
        >>> stack(x).shape
        torch.Size([5, 8])
        >>> stack(x, closed={0, 99}).shape  # the first and the last layer copy their input
        torch.Size([5, 8])
        >>> stack.trace(x).t.shape  # the transform gates of all layers
        torch.Size([100, 5, 8])
    """

    def __init__(
        self,
        width: int,
        depth: int,
        activation: str | Activation = "tanh",
        gate_bias: float | None = None,
        carry: Carry = "coupled",
        *,
        gate_activation: str | Activation = "sigmoid",
        carry_bias: float | None = None,
        init: str = "auto",
        backend: Backend = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if carry not in CARRIES:
            raise unknown("carry", carry, CARRIES)
        super().__init__(width, depth, 1 if carry == "coupled" else 2, activation, init, backend, device, dtype)
        self.carry: Carry = carry
        self.gate_activation = resolve_activation(gate_activation)
        self.initial_gate_bias = suggest_gate_bias(depth, "linear") if gate_bias is None else gate_bias
        self.initial_carry_bias = -self.initial_gate_bias if carry_bias is None else carry_bias
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the weights by `init`, block biases to 0 and gate biases to `gate_bias` and `carry_bias`."""
        super().reset_parameters()
        with torch.no_grad():
            self.bias[:, self.gate_part(0)] = self.initial_gate_bias
            self.bias[:, self.gate_part(1)] = self.initial_carry_bias

    def _layer(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Equation 2: `y = H(x) * T(x) + x * C(x)`, where C = 1 - T if the gates are coupled (Equation 3)."""
        h, t, c = self._transforms(x, weight, bias)
        return highway(x, h, t, c)

    def _transforms(self, x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """H(x), T(x) and C(x), from one product for all of them; C is None if it is 1 - T."""
        h, t, *c = self.split(F.linear(x, weight, bias))
        return self.activation(h), self.gate_activation(t), self.gate_activation(c[0]) if c else None

    @property
    def activations(self) -> kernels.Activations:
        return self.activation, self.gate_activation

    @property
    def gate_bias(self) -> Tensor:
        """The biases of the transform gates, `(layer, block)`; assign a number or a tensor to set them."""
        return self.bias.detach()[:, self.gate_part(0)]

    @gate_bias.setter
    def gate_bias(self, value: float | Tensor) -> None:
        self.gate_bias.copy_(torch.as_tensor(value))

    @torch.no_grad()
    def trace(self, x: Tensor, closed: Collection[int] = ()) -> Trace:
        """The block states, gates and block outputs of all layers for x, each `(layer, batch, block)`.

        No gradients are computed, and nothing is stored in the stack.

        Args:
            x: The input of the first layer.
            closed: Layers to close, counted from 0, as in `forward`.
        """
        closed = self._check(x, closed)
        if x.dim() == 2 and len(closed) < self.depth and self._can_run_fused(x):
            return self._fused_trace(x, closed)
        rows = []
        for layer, (weight, bias) in enumerate(self.layer_parameters()):
            rows.append(closed_trace(x) if layer in closed else open_trace(x, *self._transforms(x, weight, bias)))
            x = rows[-1].y
        return stack_traces(rows)

    def _fused_trace(self, x: Tensor, closed: Collection[int]) -> Trace:
        layers = kernels.open_layers(self.depth, closed)
        _x, h, t, *c, y = kernels.trace_stack(x.contiguous(), self.weight, self.bias, layers, self.formula)
        carry = c[0] if c else 1 - t
        if not closed:
            return Trace(h, t, carry, y)
        zeros = h.new_zeros(self.depth, *h.shape[1:])
        carried = torch.cat([x[None], y])[torch.searchsorted(layers, torch.arange(self.depth), right=True)]
        return Trace(
            zeros.index_copy(0, layers, h),
            zeros.index_copy(0, layers, t),
            (zeros + 1).index_copy(0, layers, carry),
            carried,
        )

    def to_layers(self) -> list[HighwayLinear]:
        """Single layers with copies of the weights."""
        without_pieces(self.activation, "HighwayLinear")
        layers = []
        for weight, bias in zip(self.weight, self.bias, strict=True):
            layer = HighwayLinear(
                self.width,
                self.activation,
                self.initial_gate_bias,
                self.carry,
                gate_activation=self.gate_activation,
                carry_bias=self.initial_carry_bias,
                init=self.init,
                device="meta",  # draws no random numbers for weights that are replaced anyway
            )
            for part, w, b in zip(layer.maps(), weight.chunk(self.maps), bias.chunk(self.maps), strict=True):
                part.weight, part.bias = copy_parameter(w), copy_parameter(b)
            layers.append(layer)
        return layers

    @classmethod
    def from_layers(cls, layers: Sequence[HighwayLinear]) -> Self:
        """Build a stack from copies of single layers, which must agree in width, activations and carry."""
        width = common_width([(layer.width, layer.out_width) for layer in layers])
        kinds = {(layer.activation, layer.gate_activation, layer.carry is None) for layer in layers}
        if len(kinds) > 1:
            raise UserError("all layers of a stack must have the same activation, gate_activation and carry")
        first = layers[0]
        stack = cls(
            width,
            len(layers),
            first.activation,
            first.initial_gate_bias,
            "coupled" if first.carry is None else "independent",
            gate_activation=first.gate_activation,
            carry_bias=first.initial_carry_bias,
            init=first.init,
        )
        stack.weight = copy_parameter(torch.stack([layer.joint_weight() for layer in layers]))
        stack.bias = copy_parameter(torch.stack([layer.joint_bias() for layer in layers]))
        return stack
