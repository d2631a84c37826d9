"""Recurrent highway layers: several highway layers per time step (Zilly et al. 2017)."""

from collections.abc import Collection

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.nn._activations import Activation
from verydeep.nn._affine import Carry
from verydeep.nn._highway_stack import HighwayStack
from verydeep.nn._init import init_weight
from verydeep.nn._layer import Trace, Unscriptable, check_closed, closed_trace, open_trace, stack_traces
from verydeep.nn.functional import highway


class RecurrentHighway(Unscriptable, nn.Module):
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
        init: The initial weights, as for `HighwayStack`.
        device: Device of the parameters.
        dtype: Data type of the parameters.

    Example:
        >>> import torch
        >>> from verydeep.nn import RecurrentHighway
        >>> layer = RecurrentHighway(input_size=3, hidden_size=8, recurrence_depth=4, batch_first=True)
        >>> output, h_n = layer(torch.randn(2, 10, 3))
        >>> output.shape, h_n.shape
        (torch.Size([2, 10, 8]), torch.Size([1, 2, 8]))
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
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if input_size < 1:
            raise UserError(f"input_size must be at least 1, got {input_size}")
        self.input_size, self.hidden_size, self.batch_first = input_size, hidden_size, batch_first
        self.recurrence = HighwayStack(
            hidden_size, recurrence_depth, activation, gate_bias, carry, init=init, device=device, dtype=dtype
        )
        maps = self.recurrence.maps
        self.input = nn.Linear(input_size, maps * hidden_size, bias=False, device=device, dtype=dtype)
        self._reset_input()

    def reset_parameters(self) -> None:
        """Initialise all weights and biases again."""
        self.recurrence.reset_parameters()
        self._reset_input()

    def _reset_input(self) -> None:
        stack = self.recurrence
        init_weight(self.input.weight, self.input_size, self.hidden_size, stack.activation, stack.init)

    def forward(self, input: Tensor, h_0: Tensor | None = None, closed: Collection[int] = ()) -> tuple[Tensor, Tensor]:
        """The states at all time steps, and the last one.

        Args:
            input: `(time, batch, feature)`, `(batch, time, feature)` with batch_first, or unbatched `(time, feature)`.
            h_0: The initial state, `(1, batch, hidden)` or unbatched `(1, hidden)`; zeros by default.
            closed: Layers of the recurrence to close at every time step, counted from 0: they copy the state. If the
                first is closed, the input has no effect.
        """
        closed = check_closed(closed, self.recurrence.depth, self)
        time_first, state = self._check(input, h_0)
        states = []
        for from_input in self.input(time_first).unbind():  # one product for all time steps
            for layer, parameters in enumerate(self.recurrence.layer_parameters()):
                if layer not in closed:
                    state = highway(state, *self._transforms(state, *parameters, from_input if layer == 0 else None))
            states.append(state)
        output = torch.stack(states)
        return output.transpose(0, 1) if time_first is not input else output, state.unsqueeze(0)

    @torch.no_grad()
    def trace(self, input: Tensor, h_0: Tensor | None = None, closed: Collection[int] = ()) -> Trace:
        """The block states, gates and block outputs of all layers at all time steps, without gradients.

        Each has a leading dimension of layers and then the dimensions of the output, `(layer, time, batch, hidden)` or
        `(layer, batch, time, hidden)`. Nothing is stored in the module.

        Args:
            input: The input, as in `forward`.
            h_0: The initial state, as in `forward`.
            closed: Layers of the recurrence to close, counted from 0, as in `forward`.
        """
        closed = check_closed(closed, self.recurrence.depth, self)
        time_first, state = self._check(input, h_0)
        times = []
        for from_input in self.input(time_first).unbind():
            rows = []
            for layer, parameters in enumerate(self.recurrence.layer_parameters()):
                if layer in closed:
                    rows.append(closed_trace(state))
                else:
                    parts = self._transforms(state, *parameters, from_input if layer == 0 else None)
                    rows.append(open_trace(state, *parts))
                state = rows[-1].y
            times.append(stack_traces(rows))
        trace = stack_traces(times, dim=1)
        return Trace(*(value.transpose(1, 2) for value in trace)) if time_first is not input else trace

    def _check(self, input: Tensor, h_0: Tensor | None) -> tuple[Tensor, Tensor]:
        """The input with time first, and the initial state."""
        if input.dim() not in (2, 3) or input.shape[-1] != self.input_size:
            raise UserError(
                f"RecurrentHighway got an input of shape {tuple(input.shape)}: it must be "
                f"(time, batch, {self.input_size}), with batch_first=True (batch, time, {self.input_size}), "
                f"or unbatched (time, {self.input_size})"
            )
        time_first = input.transpose(0, 1) if self.batch_first and input.dim() == 3 else input
        shape = (1, *time_first.shape[1:-1], self.hidden_size)
        if h_0 is not None and tuple(h_0.shape) != shape:
            raise UserError(f"RecurrentHighway got h_0 of shape {tuple(h_0.shape)}: it must be {shape}")
        return time_first, input.new_zeros(shape[1:]) if h_0 is None else h_0[0]

    def _transforms(
        self, s: Tensor, weight: Tensor, bias: Tensor, from_input: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """H, T and C of one layer for the state s."""
        stack = self.recurrence
        z = F.linear(s, weight, bias)
        h, t, *c = stack.split(z if from_input is None else z + from_input)
        return stack.activation(h), stack.gate_activation(t), stack.gate_activation(c[0]) if c else None

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, batch_first={self.batch_first}"
