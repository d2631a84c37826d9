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


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("init", ["sparse", "laplace", "scaled_normal", "orthogonal"])
def test_other_schemes_have_zero_mean_and_the_variance_they_promise(init: str, activation: str) -> None:
    he, glorot = (2 / 200, 1 / 200)
    variance = glorot if init == "scaled_normal" or activation == "tanh" else he
    layer, stack = HighwayLinear(200, activation, init=init), PlainStack(200, 3, activation, init=init)
    for weight in (layer.block.weight, stack.weight):
        assert weight.mean().abs() < 0.02 * math.sqrt(variance)
        assert weight.var().item() == pytest.approx(variance, rel=0.1)


def test_sparse_weights_connect_fifteen_inputs_to_a_unit() -> None:
    stack = PlainStack(50, 4, init="sparse")
    assert ((stack.weight != 0).sum(-1) == 15).all()
    assert (PlainStack(5, 1, init="sparse").weight != 0).all()


def test_every_map_of_a_stack_is_orthogonal_and_every_filter_of_a_convolution() -> None:
    stack = HighwayStack(20, 3, init="orthogonal")
    for matrix in stack.weight.view(-1, 20, 20):
        torch.testing.assert_close(matrix @ matrix.T, torch.eye(20), rtol=0, atol=1e-5)
    filters = HighwayConv2d(8, 3, "relu", init="orthogonal").gate.weight.flatten(1)
    torch.testing.assert_close(filters @ filters.T, 2 * torch.eye(8), rtol=0, atol=1e-5)


def test_laplace_has_heavier_tails_than_the_normal_distribution() -> None:
    weight = PlainStack(200, 5, init="laplace").weight
    assert (weight.pow(4).mean() / weight.var() ** 2).item() == pytest.approx(6, rel=0.1)  # 3 if it were normal


def test_a_number_is_the_standard_deviation() -> None:
    assert PlainStack(200, 2, init="0.05").weight.std().item() == pytest.approx(0.05, rel=0.03)
    with pytest.raises(UserError, match="standard deviation of 0 or more, got -1"):
        HighwayStack(4, 2, init="-1")


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(UserError, match="unknown initialisation 'orthogonl'; did you mean 'orthogonal'"):
        HighwayStack(4, 2, init="orthogonl")
