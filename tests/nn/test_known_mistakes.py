"""Mistakes seen in other implementations of highway layers: each test fails where one is made."""

import gc
from typing import Any

import pytest
import torch
from torch import nn

from verydeep.models import create_model
from verydeep.nn import HighwayConv2d, HighwayLinear, HighwayStack

LAYERS = [(HighwayLinear(6), (4, 6)), (HighwayConv2d(6), (4, 6, 5, 5)), (HighwayStack(6, 4), (4, 6))]
layers = pytest.mark.parametrize(("layer", "shape"), LAYERS, ids=["linear", "conv", "stack"])


@layers
def test_what_is_carried_is_x_itself_and_not_a_map_of_it(layer: Any, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    trace = layer.trace(x)
    t, y, h = (value[0] if isinstance(layer, HighwayStack) else value for value in (trace.t, trace.y, trace.h))
    torch.testing.assert_close((y - h * t) / (1 - t), x, rtol=1e-4, atol=1e-5)


@layers
def test_the_gate_is_a_sigmoid_and_not_a_softmax(layer: Any, shape: tuple[int, ...]) -> None:
    layer.gate_bias = 2.0
    t = layer.trace(torch.zeros(shape)).t
    torch.testing.assert_close(t[0], torch.full_like(t[0], torch.sigmoid(torch.tensor(2.0)).item()))


@layers
def test_parameters_are_created_once_and_not_in_forward(layer: Any, shape: tuple[int, ...]) -> None:
    before = [(name, id(p)) for name, p in layer.named_parameters()]
    x = torch.randn(shape)
    first, second = layer(x), layer(x)
    assert torch.equal(first, second)
    assert [(name, id(p)) for name, p in layer.named_parameters()] == before


@pytest.mark.slow
@layers
def test_looking_inside_leaves_nothing_behind(layer: Any, shape: tuple[int, ...]) -> None:
    def tensors() -> int:
        gc.collect()
        return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())

    x = torch.randn(shape)
    layer.trace(x)
    before, state = tensors(), dict(layer.__dict__)
    for _ in range(5):
        layer.trace(x)
        layer(x)
    assert tensors() == before
    assert layer.__dict__ == state


@pytest.mark.parametrize("depth", [2, 9, 31])
def test_any_layer_of_any_depth_can_be_closed_without_rebuilding(depth: int) -> None:
    model = create_model("highway-mlp", depth=depth, width=5, input_shape=(7,)).eval()
    x = torch.randn(3, 7)
    outputs = [model(x), *(model(x, closed={layer}) for layer in range(depth - 1))]
    assert len({tuple(y.flatten().tolist()) for y in outputs}) == depth
    assert torch.equal(model(x), outputs[0])


@pytest.mark.parametrize("name", ["highway-mlp", "plain-mlp", "highway-mnist-16"])
def test_networks_give_logits_and_not_probabilities(name: str) -> None:
    model = create_model(name).eval()
    assert not any(isinstance(module, nn.Softmax | nn.LogSoftmax) for module in model.modules())
    rows = model(10 * torch.randn(8, 1, 28, 28)).detach()
    assert (rows < 0).any()
    assert (rows.logsumexp(1).abs() > 1e-3).all()  # log-probabilities would give 0
