"""Highway layers whose H, T and C are affine maps of one kind, computed together in one matrix product."""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from verydeep import kernels
from verydeep.errors import unknown
from verydeep.kernels import Backend
from verydeep.nn._activations import Activation, activation_name, resolve_activation, without_pieces
from verydeep.nn._init import init_weight
from verydeep.nn._layer import HighwayLayer
from verydeep.nn.functional import highway

Affine = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d
Carry = Literal["coupled", "independent"]
CARRIES = ("coupled", "independent")


class AffineHighway(HighwayLayer):
    """H = activation(W_H x + b_H), T = gate_activation(W_T x + b_T), and the same form for an independent C.

    `block`, `gate` and `carry` are ordinary modules with their own parameters (the keys of `state_dict` are
    block.weight, gate.bias, ...). Their weights are concatenated for the product, whose result is split again. If one
    of them was replaced (quantisation, adapters) or has hooks, they are called one by one instead.
    """

    block_dim: ClassVar[int]  # the dimension of blocks or feature maps, counted from the end
    map_type: ClassVar[type[Affine]]

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
        kernels.check_backend(backend)
        self.activation = without_pieces(resolve_activation(activation), type(self).__name__)
        self.gate_activation = resolve_activation(gate_activation)
        self.initial_gate_bias = gate_bias
        self.initial_carry_bias = -gate_bias if carry_bias is None else carry_bias
        self.init, self.backend = init, backend
        self.block = make()
        self.gate = make()
        self.carry = make() if carry == "independent" else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the weights by `init`, the block bias to 0 and the gate biases to `gate_bias` and `carry_bias`."""
        for module in self.maps():
            fan_in, fan_out = nn.init._calculate_fan_in_and_fan_out(module.weight)
            init_weight(module.weight, fan_in, fan_out, self.activation, self.init)
        nn.init.zeros_(bias_of(self.block))
        nn.init.constant_(bias_of(self.gate), self.initial_gate_bias)
        if self.carry is not None:
            nn.init.constant_(bias_of(self.carry), self.initial_carry_bias)

    @property
    def gate_bias(self) -> Tensor:
        """The biases of the transform gates, one per block; assign a number or a tensor to set them."""
        return bias_of(self.gate).detach()

    @gate_bias.setter
    def gate_bias(self, value: float | Tensor) -> None:
        with torch.no_grad():
            bias_of(self.gate).copy_(torch.as_tensor(value))

    def forward(self, x: Tensor, closed: bool = False) -> Tensor:
        """The block output.

        Args:
            x: The input.
            closed: Whether to close the layer: all transform gates are 0, and it copies its input.
        """
        if closed is not False:
            return super().forward(x, closed)
        x_hat = self.x_hat(x)
        if self._can_run_fused(x, x_hat):
            return self._fused(x, x_hat)
        return highway(x_hat, *self.transforms(x))

    def _can_run_fused(self, x: Tensor, x_hat: Tensor) -> bool:
        maps = self.maps()
        if not self._are_plain(maps):
            return False
        activations, weights = (self.activation, self.gate_activation), (maps[0].weight, maps[1].weight)
        with_maps = self._has_fused_maps(x, x_hat)
        return kernels.can_run_gate(self.backend, activations, x_hat, x, *weights, with_maps=with_maps)

    def _has_fused_maps(self, x: Tensor, x_hat: Tensor) -> bool:
        """Whether kernels compute the affine maps, too."""
        return False

    def _fused(self, x: Tensor, x_hat: Tensor) -> Tensor:
        """The affine maps, and everything after them in one operation."""
        z = self._affine(x, self.joint_weight(), self.joint_bias())
        y: Tensor = kernels.highway_gate(z, x_hat, len(self.maps()), self.block_dim, activation_name(self.activation))
        return y

    def transforms(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        maps = self.maps()
        if self._are_plain(maps):
            z = self._affine(x, _joint_weight(maps), _joint_bias(maps))
            h, t, *c = z.chunk(len(maps), self.block_dim)
        else:
            h, t, *c = (module(x) for module in maps)
        return self.activation(h), self.gate_activation(t), self.gate_activation(c[0]) if c else None

    def _are_plain(self, maps: list[Affine]) -> bool:
        """Whether calling each map does nothing but multiply by its weight and add its bias."""
        return all(type(module) is self.map_type and not kernels.has_own_hooks(module) for module in maps)

    def _affine(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        raise NotImplementedError

    def joint_weight(self) -> Tensor:
        """The weights of H, T and an independent C, concatenated."""
        return _joint_weight(self.maps())

    def joint_bias(self) -> Tensor:
        """The biases of H, T and an independent C, concatenated."""
        return _joint_bias(self.maps())

    def maps(self) -> list[Affine]:
        """The affine maps of H, T and an independent C."""
        modules: dict[str, Any] = self._modules  # several times as fast as `self.block`
        block, gate, carry = modules["block"], modules["gate"], self.carry
        return [block, gate] if carry is None else [block, gate, carry]

    def _describe(self) -> str:
        carry = "coupled" if self.carry is None else "independent"
        return f"activation={activation_name(self.activation)}, carry={carry}"


def _joint_weight(maps: list[Affine]) -> Tensor:
    return torch.cat([module.weight for module in maps])


def _joint_bias(maps: list[Affine]) -> Tensor:
    return torch.cat([bias_of(module) for module in maps])


def bias_of(module: Affine) -> Tensor:
    bias: Any = module.bias
    if not isinstance(bias, Tensor):
        bias = bias()  # a quantised layer has a method
    assert isinstance(bias, Tensor)
    return bias
