"""Highway layers whose H, T and C are affine maps of one kind, evaluated together by one matrix product."""

from collections.abc import Callable
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from verydeep import kernels
from verydeep.errors import unknown
from verydeep.nn._activations import Activation, activation_name, is_tanh_or_relu, resolve_activation
from verydeep.nn._backend import Backend, check_backend, is_fused
from verydeep.nn._init import init_weight
from verydeep.nn._layer import HighwayLayer

Affine = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d
Carry = Literal["coupled", "independent"]
CARRIES = ("coupled", "independent")
_WORTH = 2**15  # numbers in a layer's output from which on the fused kernels' calls cost less than they save


class AffineHighway(HighwayLayer):
    """H = activation(W_H x + b_H), T = gate_activation(W_T x + b_T), and the same form for an independent C.

    `block`, `gate` and `carry` are ordinary modules and own their parameters (so `state_dict` says block.weight,
    gate.bias, ...); their weights are joined for the product and its result is divided again.
    """

    block_dim: ClassVar[int]  # the dimension of blocks or feature maps, counted from the end

    def __init__(
        self,
        make: Callable[[], Affine],
        activation: str | Activation,
        gate_activation: str | Activation,
        gate_bias: float,
        carry: Carry,
        carry_bias: float | None,
        init: str,
        backend: Backend,
    ) -> None:
        super().__init__()
        if carry not in CARRIES:
            raise unknown("carry", carry, CARRIES)
        check_backend(backend)
        self.activation = resolve_activation(activation)
        self.gate_activation = resolve_activation(gate_activation)
        self.initial_gate_bias = gate_bias
        self.initial_carry_bias = -gate_bias if carry_bias is None else carry_bias
        self.init, self.backend = init, backend
        self.block = make()
        self.gate = make()
        self.carry = make() if carry == "independent" else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initial weights for all maps alike, zero for the block's bias, constants for the gates'."""
        for module in self.maps():
            fan_in, fan_out = nn.init._calculate_fan_in_and_fan_out(module.weight)
            init_weight(module.weight, fan_in, fan_out, self.activation, self.init)
        nn.init.zeros_(_bias(self.block))
        nn.init.constant_(_bias(self.gate), self.initial_gate_bias)
        if self.carry is not None:
            nn.init.constant_(_bias(self.carry), self.initial_carry_bias)

    @property
    def gate_bias(self) -> Tensor:
        """The transform gates' biases, one a block; assign a number or a tensor to set them."""
        return _bias(self.gate).detach()

    @gate_bias.setter
    def gate_bias(self, value: float | Tensor) -> None:
        with torch.no_grad():
            _bias(self.gate).copy_(torch.as_tensor(value))

    def forward(self, x: Tensor, closed: bool = False) -> Tensor:
        """The block output; a closed layer (all transform gates 0) copies its input."""
        x_hat = self.x_hat(x)
        if closed or not self._is_fused(x, x_hat):
            return super().forward(x, closed)
        return self._fused(x, x_hat)

    def _is_fused(self, x: Tensor, x_hat: Tensor) -> bool:
        known = is_tanh_or_relu(self.activation) and self.gate_activation is torch.sigmoid
        return is_fused(self.backend, known, [x_hat, x, self.block.weight, self.gate.weight], _WORTH)

    def _fused(self, x: Tensor, x_hat: Tensor) -> Tensor:
        """Everything behind the affine maps in one operation."""
        z = self._affine(x, self.joint_weight(), self.joint_bias())
        y: Tensor = kernels.gate(z, x_hat, len(self.maps()), self.block_dim, activation_name(self.activation))
        return y

    def transforms(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        z = self._affine(x, self.joint_weight(), self.joint_bias())
        h, t, *c = z.chunk(2 if self.carry is None else 3, self.block_dim)
        return self.activation(h), self.gate_activation(t), self.gate_activation(c[0]) if c else None

    def _affine(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        raise NotImplementedError

    def joint_weight(self) -> Tensor:
        """The weights of H, T and an independent C below each other."""
        return torch.cat([module.weight for module in self.maps()])

    def joint_bias(self) -> Tensor:
        """The biases of H, T and an independent C, one after the other."""
        return torch.cat([_bias(module) for module in self.maps()])

    def maps(self) -> list[Affine]:
        """The affine maps of H, T and an independent C."""
        return [self.block, self.gate] if self.carry is None else [self.block, self.gate, self.carry]

    def _describe(self) -> str:
        carry = "coupled" if self.carry is None else "independent"
        return f"activation={activation_name(self.activation)}, carry={carry}"


def _bias(module: Affine) -> Tensor:
    assert module.bias is not None
    return module.bias
