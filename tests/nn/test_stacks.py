from statistics import median
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.nn import HighwayLinear, HighwayStack, LSTMHighway, PlainStack, suggest_gate_bias

stacks = pytest.mark.parametrize("kind", [HighwayStack, PlainStack, LSTMHighway])


@given(
    width=st.integers(1, 7),
    depth=st.integers(1, 6),
    activation=st.sampled_from(["tanh", "relu", "gelu"]),
    carry=st.sampled_from(["coupled", "independent"]),
)
def test_a_highway_stack_is_its_layers_one_after_the_other(width: int, depth: int, activation: str, carry: Any) -> None:
    stack = HighwayStack(width, depth, activation, -1.0, carry)
    x = torch.randn(3, width)
    y = x
    for layer in stack.to_layers():
        y = layer(y)
    torch.testing.assert_close(stack(x), y)


@given(depth=st.integers(1, 6), carry=st.sampled_from(["coupled", "independent"]))
def test_to_layers_and_from_layers_are_exact_inverses(depth: int, carry: Any) -> None:
    stack = HighwayStack(5, depth, "relu", -1.5, carry, carry_bias=0.5, gate_activation="hardsigmoid")
    again = HighwayStack.from_layers(stack.to_layers())
    assert torch.equal(again.weight, stack.weight)
    assert torch.equal(again.bias, stack.bias)
    x = torch.randn(4, 5)
    assert torch.equal(again(x), stack(x))
    assert (again.carry, again.activation, again.initial_gate_bias) == (carry, stack.activation, -1.5)


def test_plain_layers_there_and_back() -> None:
    stack = PlainStack(5, 4, "relu")
    layers = stack.to_layers()
    x = y = torch.randn(3, 5)
    for layer in layers:
        y = torch.relu(layer(y))
    torch.testing.assert_close(stack(x), y)
    assert torch.equal(PlainStack.from_layers(layers, "relu")(x), stack(x))


def test_layers_are_copies_not_views() -> None:
    stack = HighwayStack(3, 2)
    before = stack.weight.detach().clone()
    nn.init.zeros_(stack.to_layers()[0].block.weight)
    assert torch.equal(stack.weight, before)


@given(st.sets(st.integers(0, 5)))
def test_closing_layers_equals_leaving_them_out(closed: set[int]) -> None:
    stack = HighwayStack(4, 6)
    x = torch.randn(3, 4)
    kept = [layer for number, layer in enumerate(stack.to_layers()) if number not in closed]
    expected = HighwayStack.from_layers(kept)(x) if kept else x
    assert torch.equal(stack(x, closed=closed), expected)
    trace = stack.trace(x, closed)
    assert torch.equal(trace.y[-1], expected)
    assert {n for n in range(6) if not trace.t[n].any()} == closed


@pytest.mark.parametrize("kind", [HighwayStack, LSTMHighway])
def test_closing_changes_nothing_for_later_calls(kind: Any) -> None:
    stack = kind(4, 3)
    x = torch.randn(2, 4)
    before = stack(x)
    assert torch.equal(stack(x, closed={0, 1, 2}), x)
    assert not torch.equal(stack(x, closed={1}), before)
    assert torch.equal(stack(x), before)


def test_a_trace_has_a_row_for_every_layer() -> None:
    stack = HighwayStack(4, 5, carry="independent")
    x = torch.randn(2, 4)
    h, t, c, y = stack.trace(x)
    assert h.shape == t.shape == c.shape == y.shape == (5, 2, 4)
    inputs = torch.cat([x[None], y[:-1]])
    torch.testing.assert_close(y, h * t + inputs * c)
    assert torch.equal(y[-1], stack(x))


@pytest.mark.slow
@stacks
def test_ten_thousand_layers_go_forward_and_backward(kind: Any) -> None:
    stack = kind(2, 10_000)
    x = torch.randn(1, 2, requires_grad=True)
    stack(x).sum().backward()
    assert stack.weight.grad.shape == stack.weight.shape
    assert stack.weight.grad.isfinite().all()


def gradient_that_arrives(stack: Any) -> float:
    """The share of the gradient at the last layer's output that arrives at the first layer's input."""
    x = torch.randn(100, stack.width, requires_grad=True)
    dy = torch.randn(100, stack.width)
    stack(x).backward(dy)
    assert x.grad is not None
    assert stack.weight.grad.isfinite().all()
    return float((x.grad.norm() / dy.norm()).item())


# Glorot's weights start tanh layers near the edge where gradients neither vanish nor explode, and width 50 makes them
# wander far to both sides of it: the ratio is smaller than for rectifiers, and taken over several networks.
@pytest.mark.slow
@pytest.mark.parametrize(("activation", "ratio"), [("tanh", 1e-2), ("relu", 1e-9)])
def test_gradients_reach_the_first_of_1000_highway_layers_and_vanish_in_plain_ones(
    activation: str, ratio: float
) -> None:
    gate_bias = suggest_gate_bias(1000, "linear")
    highway = [gradient_that_arrives(HighwayStack(50, 1000, activation, gate_bias)) for _ in range(5)]
    plain = [gradient_that_arrives(PlainStack(50, 1000, activation)) for _ in range(5)]
    assert min(highway) > 0.02
    assert max(highway) < 1
    assert median(plain) < ratio * median(highway)


def test_from_layers_refuses_what_is_no_stack() -> None:
    with pytest.raises(UserError, match=r"all must have the same width; got widths \[3, 4\]"):
        HighwayStack.from_layers([HighwayLinear(3), HighwayLinear(4)])
    with pytest.raises(UserError, match="at least one layer"):
        HighwayStack.from_layers([])
    with pytest.raises(UserError, match="must have the same activation"):
        HighwayStack.from_layers([HighwayLinear(3, "relu"), HighwayLinear(3, "tanh")])


def test_the_gate_biases_of_a_stack_can_be_read_and_set() -> None:
    stack = HighwayStack(3, 2, gate_bias=-4.0, carry="independent")
    assert (stack.gate_bias == -4.0).all()
    assert not stack.bias[:, :3].any()
    assert (stack.bias[:, 6:] == 4.0).all()
    values = torch.arange(6.0).reshape(2, 3)
    stack.gate_bias = values
    assert torch.equal(stack.bias[:, 3:6], values)
    assert stack.bias.requires_grad


def train(model: nn.Module, x: Tensor, y: Tensor, lr: float) -> float:
    optimiser = torch.optim.SGD(model.parameters(), lr, momentum=0.9)
    for _ in range(200):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimiser.step()
    return loss.item()


@pytest.mark.slow
def test_fifty_layers_of_lstm_blocks_learn_where_fifty_plain_ones_do_not() -> None:
    x = torch.randn(64, 16)
    y = (x[:, 0] * x[:, 1] > 0).long()  # exclusive or: no linear classifier can do it
    lstm = train(nn.Sequential(LSTMHighway(16, 50, gate_bias=-4.0), nn.Linear(16, 2)), x, y, lr=0.3)
    plain = [train(nn.Sequential(PlainStack(16, 50), nn.Linear(16, 2)), x, y, lr) for lr in (0.003, 0.01, 0.1, 0.3)]
    assert lstm < 0.1
    assert min(plain) > 0.3


def test_the_lstm_block_is_the_lstm_with_depth_for_time() -> None:
    stack = LSTMHighway(4, 1)
    x = torch.randn(3, 4)
    cell = nn.LSTMCell(4, 4)
    g, i, f, o = stack.weight[0].detach().chunk(4)
    bg, bi, bf, bo = stack.bias[0].detach().chunk(4)
    with torch.no_grad():  # torch's order is i, f, g, o; the layer's input stands where the hidden state does
        cell.weight_hh.copy_(torch.cat([i, f, g, o]))
        cell.bias_hh.copy_(torch.cat([bi, bf, bg, bo]))
        cell.weight_ih.zero_()
        cell.bias_ih.zero_()
    expected, _ = cell(torch.zeros(3, 4), (x, x))
    torch.testing.assert_close(stack(x), expected)


def test_the_default_gate_bias_is_not_for_a_thousand_layers() -> None:
    assert gradient_that_arrives(HighwayStack(50, 1000, gate_bias=-2.0)) < 1e-20


def test_the_trace_of_lstm_blocks_ends_in_their_output() -> None:
    stack = LSTMHighway(4, 5, gate_bias=-1.0)
    x = torch.randn(3, 4)
    trace = stack.trace(x, closed={2})
    assert torch.equal(trace.y[-1], stack(x, closed={2}))
    assert torch.equal(trace.y[2], trace.y[1])
    assert (trace.t[2] == 0).all()
    torch.testing.assert_close(trace.t[0], torch.sigmoid(x @ stack.weight[0, 4:8].T + stack.bias[0, 4:8]))
    assert torch.equal(stack.gate_bias, torch.full((5, 4), -1.0))
