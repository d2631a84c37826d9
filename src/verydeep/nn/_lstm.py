"""The LSTM block unrolled over depth: the design of the paper's pilot experiments (footnote of Section 2)."""

from collections.abc import Collection

import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep.nn._activations import Activation, without_pieces
from verydeep.nn._init import suggest_gate_bias
from verydeep.nn._layer import Trace, closed_trace, stack_traces
from verydeep.nn._stack import Stack


class LSTMHighway(Stack):
    """`depth` layers that pass on a cell state through input, forget and output gates, each with its own weights.

    With i, f, o the gates and g the block state, all computed from the layer's input x:

        cell = f * cell + i * g
        y = o * activation(cell)

    where f acts as the carry gate and i as the transform gate. The cell of the first layer is x. The paper gives no
    formulas for this design; these are the LSTM's, with depth in place of time.

    Args:
        width: Number of blocks per layer.
        depth: Number of layers.
        activation: The activation of the block state and of the cell's output.
        gate_bias: Initial bias of the input gates, `suggest_gate_bias(depth, "linear")` by default; the forget gates
            get -gate_bias, so that cells are carried.
        init: The initial weights, as for `HighwayStack`.
        device: Device of the parameters.
        dtype: Data type of the parameters.

    Example:
        >>> import torch
        >>> from verydeep.nn import LSTMHighway
        >>> LSTMHighway(width=8, depth=10)(torch.randn(5, 8)).shape
        torch.Size([5, 8])
    """

    def __init__(
        self,
        width: int,
        depth: int,
        activation: str | Activation = "tanh",
        gate_bias: float | None = None,
        *,
        init: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(width, depth, 3, activation, init, device, dtype)
        without_pieces(self.activation, "LSTMHighway")
        self.initial_gate_bias = suggest_gate_bias(depth, "linear") if gate_bias is None else gate_bias
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the weights by `init`; input and forget gates are biased to carry the cell."""
        super().reset_parameters()
        with torch.no_grad():
            _, i, f, _ = self.bias.chunk(4, -1)
            i.fill_(self.initial_gate_bias)
            f.fill_(-self.initial_gate_bias)

    @property
    def gate_bias(self) -> Tensor:
        """The biases of the input gates, `(layer, block)`."""
        return self.bias.detach()[:, self.width : 2 * self.width]

    def forward(self, x: Tensor, closed: Collection[int] = ()) -> Tensor:
        """The block outputs of the last layer.

        Args:
            x: The input of the first layer; the last dimension is the width.
            closed: Layers to close, counted from 0: they pass on cell and output unchanged.
        """
        closed = self._check(x, closed)
        cell = x
        for layer, parameters in enumerate(self.layer_parameters()):
            if layer not in closed:
                cell, trace = self._step(cell, x, *parameters)
                x = trace.y
        return x

    @torch.no_grad()
    def trace(self, x: Tensor, closed: Collection[int] = ()) -> Trace:
        """The block states, gates and block outputs of all layers for x, each `(layer, batch, block)`.

        No gradients are computed, and nothing is stored in the stack. t are the input gates, c the forget gates.

        Args:
            x: The input of the first layer.
            closed: Layers to close, counted from 0, as in `forward`.
        """
        closed = self._check(x, closed)
        cell, rows = x, []
        for layer, parameters in enumerate(self.layer_parameters()):
            if layer in closed:
                rows.append(closed_trace(x))
            else:
                cell, trace = self._step(cell, x, *parameters)
                rows.append(trace)
                x = trace.y
        return stack_traces(rows)

    def _step(self, cell: Tensor, x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Trace]:
        g, i, f, o = F.linear(x, weight, bias).chunk(4, -1)
        h, t, c = self.activation(g), torch.sigmoid(i), torch.sigmoid(f)
        cell = c * cell + t * h
        return cell, Trace(h, t, c, torch.sigmoid(o) * self.activation(cell))
