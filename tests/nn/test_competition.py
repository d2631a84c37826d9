"""Local competition: maxout and LWTA as activations of stacks."""

import pytest
import torch

from verydeep.errors import UserError
from verydeep.nn import HighwayConv2d, HighwayLinear, HighwayStack, LSTMHighway, PlainStack, RecurrentHighway


def test_of_each_pair_of_units_the_larger_one_passes() -> None:
    stack = PlainStack(4, 1, "lwta")
    with torch.no_grad():
        stack.weight.copy_(torch.eye(4))
    assert torch.equal(stack(torch.tensor([[1.0, 2.0, -3.0, -4.0]])), torch.tensor([[0.0, 2.0, -3.0, 0.0]]))
    with pytest.raises(UserError, match="needs an even width, got 3"):
        PlainStack(3, 1, "lwta")(torch.zeros(1, 3))


def test_maxout_takes_the_larger_of_two_maps_per_unit() -> None:
    stack, x = PlainStack(3, 2, "maxout"), torch.randn(5, 3)
    assert stack.weight.shape == (2, 6, 3)
    y = x
    for layer in stack.to_layers():
        pairs = layer(y).view(5, 3, 2)
        y = torch.maximum(pairs[..., 0], pairs[..., 1])
    torch.testing.assert_close(stack(x), y)
    again = PlainStack.from_layers(stack.to_layers(), "maxout")
    assert torch.equal(again(x), stack(x))


@pytest.mark.parametrize("carry", ["coupled", "independent"])
def test_a_highway_of_maxout_has_gates_of_its_own(carry: str) -> None:
    stack, x = HighwayStack(4, 3, "maxout", -1.5, carry), torch.randn(5, 4)  # type: ignore[arg-type]
    assert stack.gate_bias.shape == (3, 4)
    assert (stack.gate_bias == -1.5).all()
    trace = stack.trace(x)
    assert trace.h.shape == (3, 5, 4)
    weight, bias = stack.weight[0], stack.bias[0]
    h = (x @ weight[:8].T + bias[:8]).view(5, 4, 2).amax(-1)
    t = torch.sigmoid(x @ weight[8:12].T + bias[8:12])
    c = 1 - t if carry == "coupled" else torch.sigmoid(x @ weight[12:].T + bias[12:])
    torch.testing.assert_close(trace.y[0], h * t + x * c)
    torch.testing.assert_close(stack(x), trace.y[-1])


@pytest.mark.parametrize("activation", ["maxout", "lwta"])
def test_gradients_are_those_of_finite_differences(activation: str) -> None:
    stack = HighwayStack(4, 3, activation, -1.0, dtype=torch.float64)
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(stack, (x,))


def test_initial_weights_keep_the_size_of_the_signal() -> None:
    x = torch.randn(100, 200)
    for activation in ("maxout", "lwta"):
        y = PlainStack(200, 10, activation)(x)
        assert 0.1 < y.square().mean() < 10


def test_a_recurrent_layer_takes_maxout_and_layers_of_one_map_do_not() -> None:
    assert RecurrentHighway(3, 4, 2, "maxout")(torch.randn(5, 2, 3))[0].shape == (5, 2, 4)
    for make in (
        lambda: HighwayLinear(4, "maxout"),
        lambda: HighwayConv2d(4, 3, "maxout"),
        lambda: LSTMHighway(4, 2, "maxout"),
        lambda: HighwayStack(4, 2, "maxout").to_layers(),
    ):
        with pytest.raises(UserError, match="does not take maxout, which needs two values per unit"):
            make()
