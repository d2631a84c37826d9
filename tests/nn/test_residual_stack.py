"""Residual layers: the equation, its derivatives, and the kernels against torch's operations."""

from typing import Any

import pytest
import torch
from torch import nn

from verydeep.nn import ResidualStack
from verydeep.optim import Muon, muon_groups


def test_a_residual_stack_adds_every_layer_to_its_input() -> None:
    stack, x = ResidualStack(5, 3, "relu", backend="reference"), torch.randn(4, 5)
    y = x
    for weight, bias in zip(stack.weight, stack.bias, strict=True):
        y = y + torch.relu(y @ weight.T + bias)
    torch.testing.assert_close(stack(x), y)
    assert [state.shape for state in stack.states(x)] == [x.shape] * 4
    torch.testing.assert_close(stack.states(x)[-1], y)
    torch.testing.assert_close(stack(stack.states(x)[1], first=1), y)
    torch.testing.assert_close(stack.segment(x, 0, 2), stack.states(x)[2])


@pytest.mark.parametrize("activation", ["tanh", "softplus", "maxout", "lwta"])
def test_gradients_are_those_of_finite_differences(activation: str) -> None:
    stack = ResidualStack(4, 3, activation, dtype=torch.float64)
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)

    def outputs(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> Any:
        return torch.func.functional_call(stack, {"weight": weight, "bias": bias}, x)

    assert torch.autograd.gradcheck(outputs, (x, stack.weight, stack.bias))


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize(("width", "depth"), [(50, 20), (16, 3), (71, 1), (3, 5)])
@pytest.mark.parametrize("recompute", [False, True])
def test_the_kernels_compute_what_torch_computes(activation: str, width: int, depth: int, recompute: bool) -> None:
    fused = ResidualStack(width, depth, activation, backend="fused")
    nn.init.normal_(fused.bias, 0, 0.1)
    plain = ResidualStack(width, depth, activation, backend="reference")
    plain.load_state_dict(fused.state_dict())
    x = torch.randn(33, width)
    found = []
    for stack in (fused, plain):
        stack.recompute = recompute
        leaf = x.clone().requires_grad_()
        y = stack(leaf)
        y.square().sum().backward()
        found.append((y.detach(), leaf.grad, stack.weight.grad, stack.bias.grad, stack.segment(x, 0, depth)))
    for ours, expected in zip(*found, strict=True):
        assert ours is not None
        assert expected is not None
        torch.testing.assert_close(ours, expected, rtol=0, atol=2e-5 * expected.abs().max().item())


def test_what_all_layers_add_does_not_grow_with_their_number() -> None:
    x = torch.randn(200, 64)
    for activation in ("tanh", "relu", "maxout", "lwta"):
        for depth in (20, 1000):
            assert (ResidualStack(64, depth, activation)(x) - x).square().mean() < 5


def test_a_residual_stack_has_no_gates_and_trains_with_muon() -> None:
    stack, x = ResidualStack(6, 4), torch.randn(3, 6)
    assert stack.highway_depth == 0
    before = stack.weight.detach().clone()
    stack(x).square().sum().backward()
    Muon(muon_groups(stack), lr=0.1).step()
    assert (stack.weight != before).any()
