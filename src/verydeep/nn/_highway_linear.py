"""The fully connected highway layer (Section 2 of the paper)."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.kernels import Backend
from verydeep.nn._activations import Activation
from verydeep.nn._affine import AffineHighway, Carry
from verydeep.nn.functional import resize


class HighwayLinear(AffineHighway):
    """A fully connected highway layer: `y = H(x) * T(x) + x * (1 - T(x))`, where H and T are `nn.Linear` maps.

    H is followed by the activation and T by a sigmoid. The layer keeps the width of its input. To change the width,
    put an `nn.Linear` in front, or give `out_width`.

    Args:
        width: Number of blocks, the last dimension of x and of the output.
        activation: The activation of the block state: a name ("tanh", "relu", ...) or a callable.
        gate_bias: Initial bias of the transform gates; the more negative, the more of its input a
            new layer copies. In deep networks, use `suggest_gate_bias`.
        carry: "coupled" (C = 1 - T, as in all of the paper's experiments) or "independent" (C has its own weights).
        out_width: Number of blocks of the output if it differs; the carried x is then resized (`functional.resize`).
        gate_activation: The activation of the gates, with values between 0 and 1.
        carry_bias: Initial bias of independent carry gates; -gate_bias by default.
        init: The initial weights, as for `HighwayStack`.
        backend: "auto", "fused" (raises an error where the kernels cannot run) or "reference".
        device: Device of the parameters.
        dtype: Data type of the parameters.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from verydeep.nn import HighwayLinear
        >>> model = nn.Sequential(nn.Linear(20, 8), nn.Tanh(), *(HighwayLinear(8) for _ in range(10)), nn.Linear(8, 3))
        >>> model(torch.randn(5, 20)).shape
        torch.Size([5, 3])
        >>> HighwayLinear(8, out_width=12)(torch.randn(5, 8)).shape
        torch.Size([5, 12])
    """

    block_dim = -1
    map_type = nn.Linear

    def __init__(
        self,
        width: int,
        activation: str | Activation = "tanh",
        gate_bias: float = -2.0,
        carry: Carry = "coupled",
        *,
        out_width: int | None = None,
        gate_activation: str | Activation = "sigmoid",
        carry_bias: float | None = None,
        init: str = "auto",
        backend: Backend = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if isinstance(activation, int):
            raise UserError(
                f"HighwayLinear({width}, {activation}): a highway layer keeps its width, so it takes only one; write "
                f"HighwayLinear({width}, out_width={activation}), or put nn.Linear({width}, {activation}) in front"
            )
        out_width = width if out_width is None else out_width
        if min(width, out_width) < 1:
            raise UserError(f"a highway layer needs a width of at least 1, got {min(width, out_width)}")
        make = partial(nn.Linear, width, out_width, device=device, dtype=dtype)
        super().__init__(make, activation, gate_activation, gate_bias, carry, carry_bias, init, backend)
        self.width, self.out_width = width, out_width

    def x_hat(self, x: Tensor) -> Tensor:
        check_width(self, x, self.width)
        return resize(x, self.out_width)

    def _affine(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.linear(x, weight, bias)

    def extra_repr(self) -> str:
        return f"{self.width}, out_width={self.out_width}, {self._describe()}"


def check_width(module: nn.Module, x: Tensor, width: int) -> None:
    """Raise an error if the last dimension of x is not the width of the layer."""
    if x.dim() == 0 or x.shape[-1] != width:
        raise UserError(
            f"{type(module).__name__} of width {width} got x of shape {tuple(x.shape)}: its last dimension must be "
            f"{width}; put a plain layer such as torch.nn.Linear({x.shape[-1] if x.dim() else 1}, {width}) in front"
        )
