"""The highway layer around arbitrary modules: Equation 2 of the paper with H, T and C of any form."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.nn._layer import HighwayLayer


class Highway(HighwayLayer):
    """`y = H(x) * T(x) + x * C(x)` for any modules H, T and C: linear, convolutional, recurrent, attention, your own.

    If a module returns a tuple (`nn.GRU`, ...), its first item is used; `nn.MultiheadAttention` attends from x to x.

    Args:
        block: H, the transform of x.
        gate: T, the transform gate with its non-linearity, e.g. `nn.Sequential(nn.Linear(50, 50), nn.Sigmoid())`.
            Its output may broadcast against that of H: one gate per sample or per feature map.
        carry: C, the carry gate; 1 - T by default.
        gate_bias: A value for the bias of the gate's last layer that has one.
        resize: Computes x-hat from x if H changes its shape, e.g. `functools.partial(functional.resize, width=100)`.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from verydeep.nn import Highway
        >>> gate = nn.Sequential(nn.Linear(16, 1), nn.Sigmoid())  # one gate per token
        >>> layer = Highway(nn.MultiheadAttention(16, 4, batch_first=True), gate, gate_bias=-2.0)
        >>> layer(torch.randn(2, 10, 16)).shape
        torch.Size([2, 10, 16])
    """

    def __init__(
        self,
        block: nn.Module,
        gate: nn.Module,
        carry: nn.Module | None = None,
        *,
        gate_bias: float | None = None,
        resize: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.block, self.gate, self.carry, self.resize = block, gate, carry, resize
        self.initial_gate_bias = gate_bias
        if gate_bias is not None:
            self.gate_bias = gate_bias

    def reset_parameters(self) -> None:
        """Initialise every module inside that has `reset_parameters` again, then the gate's bias."""
        for module in self.modules():
            reset = getattr(module, "reset_parameters", None)
            if module is not self and callable(reset):
                reset()
        if self.initial_gate_bias is not None:
            self.gate_bias = self.initial_gate_bias

    @property
    def gate_bias(self) -> Tensor:
        """The bias of the gate's last layer that has one; assign a number or a tensor to set it."""
        return self._gate_bias().detach()

    @gate_bias.setter
    def gate_bias(self, value: float | Tensor) -> None:
        with torch.no_grad():
            self._gate_bias().copy_(torch.as_tensor(value))

    def _gate_bias(self) -> Tensor:
        biases = [p for name, p in self.gate.named_parameters() if name.rpartition(".")[2] == "bias"]
        if not biases:
            raise UserError(f"the gate has no parameter named 'bias' to set or read: {type(self.gate).__name__}")
        return biases[-1]

    def x_hat(self, x: Tensor) -> Tensor:
        return x if self.resize is None else self.resize(x)

    def transforms(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        h, t = _call(self.block, x), _call(self.gate, x)
        return h, t, None if self.carry is None else _call(self.carry, x)

    def _parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        x_hat, h, t, c = super()._parts(x)
        _check("block", h, x_hat.shape, broadcast=False)
        _check("gate", t, x_hat.shape, broadcast=True)
        if c is not None:
            _check("carry", c, x_hat.shape, broadcast=True)
        return x_hat, h, t, c


def _call(module: nn.Module, x: Tensor) -> Tensor:
    out = module(x, x, x, need_weights=False) if isinstance(module, nn.MultiheadAttention) else module(x)
    result = out[0] if isinstance(out, tuple) else out
    if not isinstance(result, Tensor):
        raise UserError(f"Highway: {type(module).__name__} must return a tensor, got {type(result).__name__}")
    return result


def _check(part: str, value: Tensor, shape: torch.Size, *, broadcast: bool) -> None:
    have, want = tuple(value.shape), tuple(shape)
    fits = len(have) == len(want) and all(a == b or (broadcast and a == 1) for a, b in zip(have, want, strict=True))
    if not fits:
        raise UserError(
            f"Highway: the {part} gave shape {have} where x has {want}, and a highway needs them equal; use "
            f"resize=... to carry an x-hat of shape {have}, or change the shape with a plain layer in front"
        )
