"""Muon: its updates against the polynomial on singular values, what it makes orthogonal and what not."""

from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor, nn

from verydeep.nn import HighwayConv2d, HighwayLinear, HighwayStack, LSTMHighway, PlainStack, RecurrentHighway
from verydeep.optim import Muon
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
    optimiser = make_optimiser(layer, OptimConfig("muon", 0.1, momentum=0.0))
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
    optimiser = make_optimiser(model, OptimConfig("muon", 1.0, momentum=0.0))
    gradients(model, 0)
    optimiser.step()
    matrices = (before - weight.detach()).reshape(count, -1, weight.shape[-1])
    assert weight.grad is not None
    speed = max(1, matrices.shape[1] / matrices.shape[2]) ** 0.5
    expected = [speed * by_singular_values(matrix) for matrix in weight.grad.reshape(matrices.shape)]
    torch.testing.assert_close(matrices, torch.stack(expected))


def test_an_extra_module_is_updated_by_the_same_rules() -> None:
    first, later = nn.Linear(3, 4).double(), nn.Conv2d(2, 5, 2).double()
    config = OptimConfig("muon", 1.0, momentum=0.0)
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
    groups = make_optimiser(model, OptimConfig("muon", 0.1)).param_groups
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
