"""Recurrent highway layers: several highway layers per time step (Zilly et al. 2017)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.nn._activations import Activation
from verydeep.nn._affine import Carry
from verydeep.nn._highway_stack import HighwayStack
from verydeep.nn._init import init_weight
from verydeep.nn.functional import highway


class RecurrentHighway(nn.Module):
    """A recurrent layer whose state passes through `recurrence_depth` highway layers per time step.

    The state s goes through the layers of `recurrence`; the input enters at the first of them, as in Zilly et al. It
    is called like `torch.nn.GRU` with one layer: `output, h_n = layer(input, h_0)`.

    Args:
        input_size: Number of features of the input.
        hidden_size: Number of blocks, the size of the state.
        recurrence_depth: Number of highway layers per time step.
        activation: The activation of the block states: a name or a callable.
        gate_bias: Initial bias of all transform gates.
        carry: "coupled" (C = 1 - T) or "independent" (C has its own weights).
        batch_first: Whether input and output are `(batch, time, feature)` instead of `(time, batch, feature)`.
        init: "auto", "glorot_normal", "glorot_uniform", "he_normal" or "he_uniform".
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        recurrence_depth: int = 5,
        activation: str | Activation = "tanh",
        gate_bias: float = -2.0,
        carry: Carry = "coupled",
        *,
        batch_first: bool = False,
        init: str = "auto",
    ) -> None:
        super().__init__()
        if input_size < 1:
            raise UserError(f"input_size must be at least 1, got {input_size}")
        self.input_size, self.hidden_size, self.batch_first = input_size, hidden_size, batch_first
        self.recurrence = HighwayStack(hidden_size, recurrence_depth, activation, gate_bias, carry, init=init)
        self.input = nn.Linear(input_size, self.recurrence.maps * hidden_size, bias=False)
        init_weight(self.input.weight, input_size, hidden_size, self.recurrence.activation, init)

    def forward(self, input: Tensor, h_0: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The states at all time steps, and the last one.

        Args:
            input: `(time, batch, feature)`, `(batch, time, feature)` with batch_first, or unbatched `(time, feature)`.
            h_0: The initial state, `(1, batch, hidden)` or unbatched `(1, hidden)`; zeros by default.
        """
        if input.dim() not in (2, 3) or input.shape[-1] != self.input_size:
            raise UserError(
                f"RecurrentHighway got an input of shape {tuple(input.shape)}: it must be "
                f"(time, batch, {self.input_size}), swapped with batch_first, or (time, {self.input_size})"
            )
        time_first = input.transpose(0, 1) if self.batch_first and input.dim() == 3 else input
        shape = (1, *time_first.shape[1:-1], self.hidden_size)
        if h_0 is not None and tuple(h_0.shape) != shape:
            raise UserError(f"RecurrentHighway got h_0 of shape {tuple(h_0.shape)}: it must be {shape}")
        state = input.new_zeros(shape[1:]) if h_0 is None else h_0[0]
        states = []
        for from_input in self.input(time_first).unbind():  # one product for all time steps
            state = self._step(state, from_input)
            states.append(state)
        output = torch.stack(states)
        return output.transpose(0, 1) if time_first is not input else output, state.unsqueeze(0)

    def _step(self, s: Tensor, from_input: Tensor) -> Tensor:
        stack = self.recurrence
        for depth, (weight, bias) in enumerate(zip(stack.weight.unbind(), stack.bias.unbind(), strict=True)):
            z = F.linear(s, weight, bias)
            h, t, *c = (z + from_input if depth == 0 else z).chunk(stack.maps, -1)
            gate = stack.gate_activation
            s = highway(s, stack.activation(h), gate(t), gate(c[0]) if c else None)
        return s

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, batch_first={self.batch_first}"
