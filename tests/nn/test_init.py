import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from verydeep.errors import UserError
from verydeep.nn import (
    HighwayConv2d,
    HighwayLinear,
    HighwayStack,
    PlainStack,
    init_weight,
    parameter_groups,
    suggest_gate_bias,
)


@pytest.mark.parametrize(
    ("init", "activation", "variance"),
    [
        ("auto", "relu", 2 / 200),
        ("auto", "tanh", 2 / 400),
        ("he_normal", "tanh", 2 / 200),
        ("he_uniform", "tanh", 2 / 200),
        ("glorot_normal", "relu", 2 / 400),
        ("glorot_uniform", "relu", 2 / 400),
    ],
)
def test_block_and_gate_weights_have_the_scheme_s_variance(init: str, activation: str, variance: float) -> None:
    layer = HighwayLinear(200, activation, init=init)
    stack = HighwayStack(200, 2, activation, init=init)
    for weight in (layer.block.weight, layer.gate.weight, *stack.weight.chunk(2, 1)):
        assert weight.mean().abs() < 4 * math.sqrt(variance / weight.numel())
        assert weight.var().item() == pytest.approx(variance, rel=0.03)
        bound = math.sqrt(3 * variance)
        assert (weight.abs().max() <= bound * 1.0001) == ("uniform" in init or (init, activation) == ("auto", "tanh"))


def test_convolutions_count_the_receptive_field_in_their_fan_in() -> None:
    layer = HighwayConv2d(64, 3)
    assert layer.gate.weight.var().item() == pytest.approx(2 / (64 * 9), rel=0.05)


def test_modules_of_a_rectifier_are_initialised_as_its_name() -> None:
    assert PlainStack(200, 1, nn.ReLU()).weight.var().item() == pytest.approx(2 / 200, rel=0.03)


def test_the_guide_of_the_paper_for_convolutional_networks() -> None:
    assert [suggest_gate_bias(depth) for depth in (10, 20, 30)] == [-1, -2, -3]
    assert suggest_gate_bias(3) == -1


def test_fully_connected_networks_lie_between_the_paper_s_best_two() -> None:
    assert -4 <= suggest_gate_bias(50, "linear") <= -2


@pytest.mark.parametrize("kind", ["conv", "linear"])
def test_deeper_networks_never_get_a_larger_gate_bias(kind: str) -> None:
    biases = [suggest_gate_bias(depth, kind) for depth in range(1, 20_000, 7)]  # type: ignore[arg-type]
    assert all(later <= earlier for earlier, later in pairwise(biases))
    assert -10 <= biases[-1] < -6
    assert biases[0] == -1


def test_a_suggestion_for_nothing_is_refused() -> None:
    with pytest.raises(UserError, match="at least 1, got 0"):
        suggest_gate_bias(0)
    with pytest.raises(UserError, match="unknown kind of network 'covn'; did you mean 'conv'"):
        suggest_gate_bias(10, "covn")  # type: ignore[arg-type]


def test_parameter_groups_are_the_authors() -> None:
    model = nn.ModuleDict({"stack": HighwayStack(5, 3), "norm": nn.Linear(5, 5), "classifier": nn.Linear(5, 2)})
    model["norm"].weight.requires_grad_(False)
    groups = {group["name"]: group for group in parameter_groups(model, 0.1, 0.01, classifier=model["classifier"])}
    assert [id(p) for p in groups["weights"]["params"]] == [id(model["stack"].weight)]
    assert (groups["weights"]["lr"], groups["weights"]["weight_decay"]) == (0.1, 0.01)
    assert (groups["biases"]["lr"], groups["biases"]["weight_decay"]) == (0.2, 0.0)
    assert (groups["classifier"]["lr"], groups["classifier"]["weight_decay"]) == (0.1, 0.1)
    grouped = [id(p) for group in groups.values() for p in group["params"]]
    assert sorted(grouped) == sorted(id(p) for p in model.parameters() if p.requires_grad)
    torch.optim.SGD(list(groups.values()))


def test_biases_of_recurrent_and_attention_layers_are_biases_too() -> None:
    model = nn.ModuleList([nn.GRU(3, 3), nn.MultiheadAttention(4, 2)])
    groups = {group["name"]: group["params"] for group in parameter_groups(model, 0.1)}
    assert {p.ndim for p in groups["biases"]} == {1}
    assert {p.ndim for p in groups["weights"]} == {2}


def test_weights_may_be_initialised_for_an_activation_by_name() -> None:
    for activation in ("relu", torch.relu, nn.ReLU6()):
        weight = torch.empty(300, 300)
        init_weight(weight, 300, 300, activation)
        assert weight.var().item() == pytest.approx(2 / 300, rel=0.03)
