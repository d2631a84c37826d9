"""Fully connected networks of depth 0, which are linear, and of depth 1, which have no stack."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from verydeep.analysis import gate_statistics, greedy_lesions, signal_flow
from verydeep.errors import UserError
from verydeep.models import MLP, create_model, from_pretrained, multiply_adds, save_pretrained
from verydeep.nn import parameter_groups

NAMES = ("highway-mlp", "plain-mlp")
every = pytest.mark.parametrize("depth", [0, 1])
both = pytest.mark.parametrize("name", NAMES)


def make(name: str, depth: int, **settings: Any) -> MLP:
    torch.manual_seed(0)
    model = create_model(name, depth=depth, width=9, input_shape=(4, 8), classes=5, **settings)
    assert isinstance(model, MLP)
    return model


def samples() -> Tensor:
    return torch.randn(20, 4, 8, generator=torch.Generator().manual_seed(1))


@both
@pytest.mark.parametrize(("depth", "parameters", "products"), [(0, 7850, 7840), (1, 39_760, 39_700)])
def test_parameters_are_those_of_the_equations(name: str, depth: int, parameters: int, products: int) -> None:
    # 784 pixels, 50 units, 10 classes: 784 * 10 + 10, and 784 * 50 + 50 + 50 * 10 + 10
    model = create_model(name, depth=depth, width=50, device="meta")
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert multiply_adds(model) == products


@both
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_the_outputs_are_those_of_the_equations(name: str, activation: str) -> None:
    x = samples()
    linear, one = make(name, 0, activation=activation), make(name, 1, activation=activation)
    torch.testing.assert_close(linear(x), x.flatten(1) @ linear.classifier.weight.T + linear.classifier.bias)
    assert one.input is not None
    hidden = getattr(torch, activation)(x.flatten(1) @ one.input.weight.T + one.input.bias)
    torch.testing.assert_close(one(x), hidden @ one.classifier.weight.T + one.classifier.bias)


@every
def test_highway_and_plain_networks_are_the_same(depth: int) -> None:
    highway, plain = (make(name, depth) for name in NAMES)
    found, expected = highway.state_dict(), plain.state_dict()
    assert list(found) == list(expected)
    assert all(torch.equal(found[name], expected[name]) for name in found)
    assert torch.equal(highway(samples()), plain(samples()))


@both
@every
def test_there_are_no_highway_layers_to_close_or_trace(name: str, depth: int) -> None:
    model, x = make(name, depth), samples()
    assert model.highway_depth == 0
    assert model.trace(x) == ()
    assert torch.equal(model(x, closed=()), model(x.flatten(1)))
    with pytest.raises(UserError, match="cannot close layer 0: this MLP has no highway layers"):
        model(x, closed={0})


@both
@every
def test_gradients_are_those_of_autograd(name: str, depth: int) -> None:
    x, y, scale = samples(), torch.arange(20) % 5, 1 / 20
    losses: tuple[Any, ...] = (
        lambda model: model.backward_cross_entropy(x, y, scale),
        lambda model: model.backward_loss(x, lambda out: F.cross_entropy(out, y, reduction="sum"), scale),
    )
    expected = make(name, depth)
    logits = expected(x)
    total = F.cross_entropy(logits, y, reduction="sum")
    (scale * total).backward()
    for backward in losses:
        model = make(name, depth)
        loss, outputs = backward(model)
        assert torch.equal(outputs, logits.detach())
        torch.testing.assert_close(loss, total.detach())
        assert not loss.requires_grad
        for parameter, reference in zip(model.parameters(), expected.parameters(), strict=True):
            torch.testing.assert_close(parameter.grad, reference.grad)


@both
@every
def test_weights_are_initialised_again_after_the_meta_device(name: str, depth: int) -> None:
    model: Any = make(name, depth, device="meta").to_empty(device="cpu")
    for parameter in model.parameters():
        torch.nn.init.constant_(parameter, 7.0)
    model.reset_parameters()
    assert all(0 < p.abs().max() < 1.5 if p.dim() > 1 else not p.any() for p in model.parameters())


@both
@every
def test_a_network_is_saved_and_loaded(name: str, depth: int, tmp_path: Path) -> None:
    model = make(name, depth).eval()
    save_pretrained(model, tmp_path)
    loaded = from_pretrained(tmp_path)
    assert loaded.config == model.config
    assert torch.equal(loaded(samples()), model(samples()))


@every
def test_there_is_nothing_to_recompute(depth: int) -> None:
    model = make("highway-mlp", depth)
    expected = model(samples())
    model.checkpoint_activations()
    assert torch.equal(model(samples()), expected)


@every
def test_all_parameters_are_in_one_group(depth: int) -> None:
    groups = parameter_groups(make("highway-mlp", depth), 0.1, 0.01)
    assert [group["name"] for group in groups] == [*(["weights"] if depth else []), "biases", "classifier"]
    assert sum(len(group["params"]) for group in groups) == 2 + 2 * depth


@every
def test_only_signal_flow_can_be_analysed(depth: int) -> None:
    model, data = make("highway-mlp", depth), (samples(), torch.arange(20) % 5)
    for analyse in (gate_statistics, greedy_lesions):
        with pytest.raises(UserError, match="uses no highway layers"):
            analyse(model, data)
    assert len(signal_flow(model, data).layers) == 1 + depth


@every
def test_an_unknown_activation_is_refused(depth: int) -> None:
    with pytest.raises(UserError, match="did you mean 'relu'"):
        make("plain-mlp", depth, activation="rleu")
