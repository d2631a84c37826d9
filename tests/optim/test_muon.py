"""Muon: its updates against the polynomial on singular values, what it makes orthogonal and what not."""

import copy
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.nn import HighwayConv2d, HighwayLinear, HighwayStack, LSTMHighway, PlainStack, RecurrentHighway
from verydeep.optim import Muon, muon_groups
from verydeep.optim._muon import orthogonal
from verydeep.training import OptimConfig
from verydeep.training.step._optimiser import make_optimiser


def by_singular_values(matrix: Tensor) -> Tensor:
    """The same in the plain way: five times a polynomial of every singular value."""
    u, s, v = torch.linalg.svd(matrix.double(), full_matrices=False)
    s = s / s.norm()
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    found: Tensor = u @ s.diag() @ v
    return found


def gradients(model: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)


@given(rows=st.integers(1, 12), columns=st.integers(1, 12), size=st.floats(1e-12, 1e4), seed=st.integers(0, 999))
def test_singular_values_become_about_one_whatever_the_size(rows: int, columns: int, size: float, seed: int) -> None:
    x = size * torch.randn(2, rows, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    found = orthogonal(x)
    torch.testing.assert_close(found, torch.stack([by_singular_values(matrix) for matrix in x]))
    before, after = (torch.linalg.svdvals(matrices) for matrices in (x, found))
    seen = before / before.norm(dim=-1, keepdim=True) > 0.01  # five steps cannot lift what is almost nothing
    assert (after[seen] > 0.5).all()
    assert (after < 1.25).all()


def test_nothing_comes_of_nothing() -> None:
    assert not orthogonal(torch.zeros(1, 3, 4)).any()


@pytest.mark.parametrize("nesterov", [True, False])
def test_muon_is_the_textbook_update(nesterov: bool) -> None:
    config = OptimConfig("muon", 0.1, momentum=0.8, nesterov=nesterov, weight_decay=0.05, bias_lr=2.0)
    model = nn.Sequential(nn.Linear(3, 7), nn.Linear(7, 5)).double()
    model.classifier = model[1]
    optimiser = make_optimiser(model, config)
    assert isinstance(optimiser, Muon)
    expected = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    velocity = {name: torch.zeros_like(value) for name, value in expected.items()}
    for step in range(4):
        gradients(model, step)
        optimiser.step()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None
            velocity[name] = 0.8 * velocity[name] + parameter.grad
            move = parameter.grad + 0.8 * velocity[name] if nesterov else velocity[name]
            if name == "0.weight":
                move = by_singular_values(move) * (7 / 3) ** 0.5
            bias = name.endswith("bias")
            kept = 1.0 if bias else 1 - 0.1 * 0.05
            expected[name] = kept * expected[name] - (0.2 if bias else 0.1) * move
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.detach(), expected[name])


def test_filters_are_one_matrix_for_each_map_of_a_layer() -> None:
    layer = HighwayConv2d(4).double()
    before = [m.weight.detach().clone() for m in (layer.block, layer.gate)]
    optimiser = make_optimiser(layer, OptimConfig("muon", 0.1, momentum=0.0, weight_decay=0.0))
    gradients(layer, 0)
    optimiser.step()
    for module, old in zip((layer.block, layer.gate), before, strict=True):
        weight: Any = module.weight
        move = by_singular_values(weight.grad.flatten(1)).view(weight.shape)
        torch.testing.assert_close(weight.detach(), old - 0.1 * move)


@pytest.mark.parametrize("carry", ["coupled", "independent"])
def test_a_stack_learns_like_its_layers_one_by_one(carry: Any) -> None:
    layers = [HighwayLinear(6, carry=carry).double() for _ in range(3)]
    stack = HighwayStack.from_layers(layers)
    config = OptimConfig("muon", 0.1, nesterov=True, weight_decay=0.1)
    optimisers = [make_optimiser(module, config) for module in (stack, nn.Sequential(*layers))]
    for step in range(3):
        gradients(stack, step)
        for layer, weight, bias in zip(layers, stack.weight.grad, stack.bias.grad, strict=True):  # type: ignore[arg-type]
            for module, w, b in zip(layer.maps(), weight.split(6), bias.split(6), strict=True):
                module.weight.grad, module.bias.grad = w.clone(), b.clone()  # type: ignore[union-attr]
        for optimiser in optimisers:
            optimiser.step()
    torch.testing.assert_close(stack.weight, HighwayStack.from_layers(layers).weight)
    torch.testing.assert_close(stack.bias, HighwayStack.from_layers(layers).bias)


JOINT = [
    (HighwayStack(5, 3), "weight", 6),
    (PlainStack(5, 3), "weight", 3),
    (LSTMHighway(5, 3), "weight", 12),
    (RecurrentHighway(4, 5, 2), "input.weight", 2),
    (nn.MultiheadAttention(6, 2), "in_proj_weight", 3),
    (nn.LSTM(4, 5, bidirectional=True), "weight_ih_l0_reverse", 4),
    (nn.GRU(4, 5), "weight_hh_l0", 3),
]


@pytest.mark.parametrize(("model", "name", "count"), JOINT, ids=lambda value: type(value).__name__)
def test_matrices_that_are_kept_together_are_made_orthogonal_one_by_one(
    model: nn.Module, name: str, count: int
) -> None:
    model.double()
    weight = model.get_parameter(name)
    before = weight.detach().clone()
    optimiser = make_optimiser(model, OptimConfig("muon", 1.0, momentum=0.0, weight_decay=0.0))
    gradients(model, 0)
    optimiser.step()
    matrices = (before - weight.detach()).reshape(count, -1, weight.shape[-1])
    assert weight.grad is not None
    speed = max(1, matrices.shape[1] / matrices.shape[2]) ** 0.5
    expected = [speed * by_singular_values(matrix) for matrix in weight.grad.reshape(matrices.shape)]
    torch.testing.assert_close(matrices, torch.stack(expected))


def test_an_extra_module_is_updated_by_the_same_rules() -> None:
    first, later = nn.Linear(3, 4).double(), nn.Conv2d(2, 5, 2).double()
    config = OptimConfig("muon", 1.0, momentum=0.0, weight_decay=0.0)
    optimiser = make_optimiser(first, config, extra=later)
    before = later.weight.detach().clone()
    gradients(later, 0)
    optimiser.step()
    assert later.weight.grad is not None
    torch.testing.assert_close(
        (before - later.weight.detach()).flatten(1), by_singular_values(later.weight.grad.flatten(1))
    )


def test_only_hidden_matrices_are_made_orthogonal() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Embedding(7, 4), nn.Flatten())
    model.classifier = nn.Linear(4, 2)
    groups = make_optimiser(model, OptimConfig("muon", 0.1, weight_decay=0.0)).param_groups
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    found = {names[id(p)]: group["orthogonal"] for group in groups for p in group["params"]}
    assert len(found) == len(names)
    assert [name for name in found if found[name]] == ["0.weight"]


def test_parameters_without_a_gradient_are_left_alone() -> None:
    model = nn.Linear(3, 2)
    before = model.weight.detach().clone()
    make_optimiser(model, OptimConfig("muon", 0.1, weight_decay=0.1)).step()
    assert torch.equal(model.weight, before)


def test_plain_parameters_are_accepted_and_only_matrices_are_made_orthogonal() -> None:
    model = nn.Linear(4, 3).double()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimiser = Muon(model.parameters(), lr=0.5)
    gradients(model, 0)
    optimiser.step()
    weight, bias = ((old - new) / 0.5 for old, new in zip(before, model.parameters(), strict=True))
    assert model.weight.grad is not None
    torch.testing.assert_close(weight, by_singular_values(model.weight.grad))
    torch.testing.assert_close(bias, model.bias.grad)


def stack_and_optimiser() -> tuple[HighwayStack, Muon]:
    stack = HighwayStack(4, 3, dtype=torch.float64)
    return stack, Muon(muon_groups(stack), lr=0.1, nesterov=True, weight_decay=0.1)


def test_the_groups_of_a_model_are_those_of_the_settings_without_the_settings() -> None:
    model = nn.Sequential(HighwayStack(4, 2), nn.Embedding(5, 4))
    model.classifier = nn.Linear(4, 2)
    optimiser = Muon(muon_groups(model), lr=0.1, weight_decay=0.3)
    found = [(g["name"], len(g["params"]), g["orthogonal"], g["lr"], g["weight_decay"]) for g in optimiser.param_groups]
    assert found == [
        ("weights", 1, True, 0.1, 0.3),
        ("weights", 1, False, 0.1, 0.3),
        ("biases", 2, False, 0.1, 0.0),
        ("classifier", 1, False, 0.1, 0.3),
    ]
    assert all("shapes" not in group for group in optimiser.state_dict()["param_groups"])


@pytest.mark.parametrize("way", ["state_dict", "deepcopy"])
def test_a_stored_or_copied_optimiser_goes_on_as_the_original(way: str) -> None:
    stack, optimiser = stack_and_optimiser()
    gradients(stack, 0)
    optimiser.step()
    other, later = copy.deepcopy((stack, optimiser))
    if way == "state_dict":
        later = Muon(muon_groups(other), lr=0.7)
        later.load_state_dict(copy.deepcopy(optimiser.state_dict()))
    for model, muon in ((stack, optimiser), (other, later)):
        gradients(model, 1)
        muon.step()
    assert torch.equal(stack.weight, other.weight)
    assert torch.equal(stack.bias, other.bias)


def test_closures_schedules_and_zero_grad_work_as_in_other_optimisers() -> None:
    stack, optimiser = stack_and_optimiser()
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, step_size=1, gamma=0.5)
    x = torch.randn(8, 4, dtype=torch.float64)

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss: Tensor = (stack(x) - 1).square().mean()
        loss.backward()
        return loss

    first = optimiser.step(closure)
    schedule.step()
    assert [group["lr"] for group in optimiser.param_groups] == [0.05, 0.05]
    assert optimiser.step(closure) < first
    optimiser.zero_grad()
    assert stack.weight.grad is None


def test_parameters_can_be_plain_tensors_and_be_added_later() -> None:
    tensors = [torch.zeros(3, 2, requires_grad=True), torch.zeros(3, requires_grad=True)]
    optimiser = Muon(tensors[:1], lr=1.0)
    optimiser.add_param_group({"params": tensors[1:], "lr": 0.5})
    for tensor in tensors:
        tensor.grad = torch.ones_like(tensor)
    optimiser.step()
    assert torch.equal(tensors[1], torch.full((3,), -0.5))
    assert torch.linalg.svdvals(tensors[0].detach())[0] > 0.5


@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize("shape", [(6, 6), (12, 5), (5, 12)])
def test_matrices_learn_as_in_torchs_muon_but_for_its_bfloat16(shape: tuple[int, int], nesterov: bool) -> None:
    ours = torch.randn(shape, requires_grad=True)
    theirs = ours.detach().clone().requires_grad_()
    settings = {"lr": 0.1, "momentum": 0.8, "nesterov": nesterov, "weight_decay": 0.2}
    optimisers: list[Any] = [Muon([ours], **settings), torch.optim.Muon([theirs], **settings)]  # type: ignore[arg-type]
    before = ours.detach().clone()
    for _ in range(5):
        ours.grad = theirs.grad = torch.randn(shape)
        for optimiser in optimisers:
            optimiser.step()
    difference = (ours - theirs).norm() / (ours - before).norm()
    assert 0 < difference < 0.02  # bfloat16 has eight bits


def test_one_by_one_filters_are_matrices() -> None:
    layer = nn.Conv2d(4, 3, 1, bias=False).double()
    before = layer.weight.detach().clone()
    gradients(layer, 0)
    Muon(layer.parameters(), lr=1.0).step()
    assert layer.weight.grad is not None
    move = by_singular_values(layer.weight.grad.view(3, 4))
    torch.testing.assert_close((before - layer.weight.detach()).view(3, 4), move)


@pytest.mark.parametrize("setting", ["lr", "momentum", "weight_decay"])
def test_negative_settings_are_refused(setting: str) -> None:
    settings: dict[str, Any] = {setting: -1}
    with pytest.raises(UserError, match=f"{setting} must be at least 0, got -1"):
        Muon([torch.zeros(2, 2, requires_grad=True)], **settings)
