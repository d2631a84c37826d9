"""Fully open gates give the block state and closed ones carry x, however large x is."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from verydeep.kernels.conv._conv_call import ConvOptions
from verydeep.kernels.conv._conv_op import conv_layer, conv_reference
from verydeep.kernels.gate._gate_op import gate_reference, highway_gate
from verydeep.nn import HighwayStack

Inputs = tuple[Tensor, ...]
OPEN, SHUT = 100.0, -100.0
LARGE = 1e8  # float32 numbers around it are 8 apart: a block state is lost in a difference to it
activations = pytest.mark.parametrize("activation", ["tanh", "relu"])


def stack_of(backend: Any) -> Callable[..., Tensor]:
    def run(x: Tensor, weight: Tensor, bias: Tensor, activation: str) -> Tensor:
        module = HighwayStack(x.shape[-1], len(weight), activation, backend=backend)
        y: Tensor = torch.func.functional_call(module, {"weight": weight, "bias": bias}, x)
        return y

    return run


def fused_conv(x: Tensor, weight: Tensor, bias: Tensor, activation: str) -> Tensor:
    return conv_layer(x, weight.chunk(2), bias.chunk(2), ConvOptions(1, 1, f"highway_{activation}", 2))


def reference_conv(x: Tensor, weight: Tensor, bias: Tensor, activation: str) -> Tensor:
    return conv_reference(x, [weight], [bias], ConvOptions(1, 1, f"highway_{activation}", 2))


def fused_gate(x: Tensor, z: Tensor, activation: str) -> Tensor:
    return highway_gate(z, x, 2, -1, activation)  # type: ignore[no-any-return]


def reference_gate(x: Tensor, z: Tensor, activation: str) -> Tensor:
    return gate_reference(z, x, 2, -1, activation)


def large(*shape: int) -> Tensor:
    return torch.where(torch.rand(shape) < 0.5, -LARGE, LARGE)


def stack_inputs(gate_bias: float, depth: int) -> Inputs:
    """x and parameters that give block states of ordinary size, and gates that do not depend on x."""
    weight = torch.randn(depth, 26, 13) / 4 / LARGE
    weight[:, 13:] = 0
    return large(100, 13), weight, torch.cat([torch.randn(depth, 13), torch.full((depth, 13), gate_bias)], 1)


def conv_inputs(gate_bias: float) -> Inputs:
    weight = torch.randn(32, 16, 3, 3) / 12 / LARGE
    weight[16:] = 0
    return large(3, 16, 7, 6), weight, torch.cat([torch.randn(16), torch.full((16,), gate_bias)])


def gate_inputs(gate_bias: float) -> Inputs:
    return large(9, 33), torch.cat([torch.randn(9, 33), torch.full((9, 33), gate_bias)], 1)


def cases(gate_bias: float, depth: int) -> dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor], Inputs]]:
    return {
        "stack": (stack_of("fused"), stack_of("reference"), stack_inputs(gate_bias, depth)),
        "convolution": (fused_conv, reference_conv, conv_inputs(gate_bias)),
        "gate": (fused_gate, reference_gate, gate_inputs(gate_bias)),
    }


def with_gradients(function: Callable[..., Tensor], inputs: Inputs, dy: Tensor, activation: str) -> list[Tensor]:
    leaves = [value.detach().clone().requires_grad_() for value in inputs]
    y = function(*leaves, activation)
    return [y.detach(), *torch.autograd.grad(y, leaves, dy)]


@activations
@pytest.mark.parametrize("kind", ["stack", "convolution", "gate"])
def test_open_gates_give_the_block_state_and_its_gradients(kind: str, activation: str) -> None:
    fused, reference, inputs = cases(OPEN, depth=1)[kind]
    dy = torch.randn(inputs[0].shape)
    found, expected = (with_gradients(function, inputs, dy, activation) for function in (fused, reference))
    assert expected[0].abs().max() < 100
    for value, wanted in zip(found, expected, strict=True):
        scale = float(wanted.abs().max()) or 1.0
        torch.testing.assert_close(value / scale, wanted / scale, rtol=1e-5, atol=1e-5)


@activations
@pytest.mark.parametrize("kind", ["stack", "convolution", "gate"])
def test_open_gates_have_no_gradient_of_their_own(kind: str, activation: str) -> None:
    fused, _, inputs = cases(OPEN, depth=1)[kind]
    *_, last = with_gradients(fused, inputs, torch.randn(inputs[0].shape), activation)
    gates = last[..., last.shape[-1] // 2 :]  # of the bias, or of z
    assert torch.equal(gates, torch.zeros_like(gates))


@activations
@pytest.mark.parametrize("kind", ["stack", "convolution", "gate"])
def test_closed_gates_carry_x_and_dy_to_the_last_bit(kind: str, activation: str) -> None:
    fused, _, inputs = cases(SHUT, depth=3)[kind]
    dy = torch.randn(inputs[0].shape)
    y, dx, *others = with_gradients(fused, inputs, dy, activation)
    assert torch.equal(y, inputs[0])
    assert torch.equal(dx, dy)
    assert not any(value.any() for value in others)


@activations
def test_an_open_layer_behind_others_gives_its_block_state(activation: str) -> None:
    """As in a stack whose first layers carry a large x to one that is open."""
    x, weight, bias = stack_inputs(SHUT, depth=4)
    bias[-1, 13:] = OPEN
    found, expected = (stack_of(backend)(x, weight, bias, activation) for backend in ("fused", "reference"))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
