"""A whole fully connected network in kernels computes what torch's operations do."""

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn

from verydeep import kernels
from verydeep.models import MLP, MLPConfig, create_model

KINDS = ("plain", "coupled", "independent")


def make(kind: str, inputs: int, width: int, depth: int, classes: int, activation: str = "tanh") -> MLP:
    """A network whose stack has `depth` layers, with biases away from zero.

    The layers around the stack start as torch's own: He's initial weights are large at width 1, and sums of large terms
    that cancel would need a wider tolerance.
    """
    config = MLPConfig(
        "plain" if kind == "plain" else "highway", depth + 1, width, (inputs,), classes, activation, -1.0
    )
    model = MLP(config if kind == "plain" else replace(config, carry=kind))  # type: ignore[arg-type]
    assert model.input is not None
    assert model.stack is not None
    model.input.reset_parameters()
    model.classifier.reset_parameters()
    nn.init.normal_(model.stack.bias)
    return model


def reference(model: MLP) -> MLP:
    shadow_copy = copy.deepcopy(model)
    assert shadow_copy.stack is not None
    shadow_copy.stack.backend = "reference"
    return shadow_copy


def gradients(network: MLP, x: Tensor, dy: Tensor, closed: Any = ()) -> list[Tensor]:
    network.zero_grad()
    y = network(x, closed)
    y.backward(dy)
    return [y.detach(), *(p.grad for p in network.parameters() if p.grad is not None)]


def assert_close(found: list[Tensor], expected: list[Tensor]) -> None:
    for a, b in zip(found, expected, strict=True):
        scale = max(1.0, float(b.abs().max()))
        torch.testing.assert_close(a / scale, b / scale, rtol=1e-5, atol=5e-6)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For every call of the kernels for whole networks, whether the result can be differentiated."""
    found: list[bool] = []
    run = kernels.run_mlp

    def counted(*args: Any) -> Tensor:
        y = run(*args)
        found.append(y.requires_grad)
        return y

    monkeypatch.setattr(kernels, "run_mlp", counted)
    return found


@pytest.mark.slow
@settings(max_examples=500)
@given(data=st.data())
def test_a_fused_network_equals_the_reference_forward_and_backward(data: st.DataObject) -> None:
    draw = data.draw
    inputs = 16 * draw(st.integers(1, 10), "inputs / 16") if draw(st.booleans(), "whole") else draw(st.integers(1, 300))
    width, depth = draw(st.integers(1, 41), "width"), draw(st.integers(1, 4), "depth")
    classes = draw(st.integers(1, 12) | st.just(150), "classes")
    batch = draw(st.integers(1, 40) | st.sampled_from([104, 105, 250]), "batch")
    torch.manual_seed(draw(st.integers(0, 100), "seed"))
    kind = draw(st.sampled_from(KINDS), "kind")
    network = make(kind, inputs, width, depth, classes, draw(st.sampled_from(["tanh", "relu"])))
    assert network.stack is not None
    network.stack.recompute = draw(st.booleans(), "recompute")
    closed = set() if kind == "plain" else draw(st.sets(st.integers(0, depth - 1)), "closed")
    x, dy = torch.randn(batch, inputs), torch.randn(batch, classes)
    plain = reference(network)
    assert_close(gradients(network, x, dy, closed), gradients(plain, x, dy, closed))
    with torch.no_grad():
        assert_close([network(x, closed)], [plain(x, closed)])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_same_number_of_threads_gives_the_same_bits(threads: int) -> None:
    network, before = make("coupled", 64, 50, 5, 10), torch.get_num_threads()
    x, dy = torch.randn(100, 64), torch.randn(100, 10)
    torch.set_num_threads(threads)
    try:
        first, again = gradients(network, x, dy), gradients(network, x, dy)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert_close(first, gradients(reference(network), x, dy))


def test_samples_may_lie_anyhow_in_memory() -> None:
    network = make("coupled", 32, 9, 2, 3)
    x, dy = torch.randn(32, 11).t(), torch.randn(3, 11).t()
    assert_close(gradients(network, x, dy), gradients(reference(network), x, dy))


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_what_is_not_finite_stays_in_its_sample(activation: str) -> None:
    network = make("coupled", 16, 5, 3, 4, activation)
    x = torch.randn(9, 16)
    x[4, 2] = torch.nan
    assert torch.equal(network(x).isnan(), reference(network)(x).isnan())


def test_kernels_do_the_whole_network_in_training_and_inference(calls: list[bool]) -> None:
    network = make("coupled", 32, 9, 2, 3)
    network(torch.randn(4, 32))
    with torch.no_grad():
        network(torch.randn(4, 32))
    assert calls == [True, False]


def test_hooks_of_a_part_see_what_goes_through_it(calls: list[bool]) -> None:
    for name in ("input", "stack", "classifier"):
        network, seen = make("coupled", 32, 9, 2, 3), list[tuple[Tensor, Tensor]]()
        getattr(network, name).register_forward_hook(lambda _m, x, y, seen=seen: seen.append((x[0], y)))
        network(torch.randn(4, 32))
        assert [tuple(part.shape) for part in seen[0]] == {
            "input": [(4, 32), (4, 9)], "stack": [(4, 9), (4, 9)], "classifier": [(4, 9), (4, 3)],
        }[name]  # fmt: skip
    assert not calls


def test_samples_that_need_a_gradient_get_one(calls: list[bool]) -> None:
    network = make("coupled", 32, 9, 2, 3)
    x = torch.randn(4, 32, requires_grad=True)
    network(x).sum().backward()
    assert x.grad is not None
    assert float(x.grad.abs().sum()) > 0
    assert not calls


def test_frozen_parameters_get_no_gradient() -> None:
    network = make("coupled", 32, 9, 2, 3)
    assert network.input is not None
    assert network.stack is not None
    network.input.requires_grad_(False)
    network(torch.randn(4, 32)).sum().backward()
    assert network.input.weight.grad is None
    assert network.stack.weight.grad is not None


def test_a_second_derivative_is_refused_with_a_reason() -> None:
    network = make("coupled", 32, 9, 2, 3)
    y = network(torch.randn(4, 32)).sum()
    with pytest.raises(RuntimeError, match='backend="reference"'):
        torch.autograd.grad(y, [network.classifier.weight], create_graph=True)


def test_a_layer_may_be_closed_twice() -> None:
    model = create_model("highway-mlp", depth=3)
    x = torch.randn(2, 1, 28, 28)
    assert torch.equal(model(x, closed=[0, 1, 1]), model(x, closed={0, 1}))
    assert torch.equal(model(x, closed=[1, 1]), model(x, closed={1}))
