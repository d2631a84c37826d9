"""The update against the textbook, on the gradients that autograd gives."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from verydeep.data import Batches, Dataset
from verydeep.errors import UserError
from verydeep.models import create_model
from verydeep.training import OptimConfig, ScheduleConfig, TrainConfig, TrainingProgress, train
from verydeep.training.step._optimiser import make_optimiser, set_learning_rate


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(16, 5)
        self.classifier = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(torch.tanh(self.hidden(x.flatten(1))))  # type: ignore[no-any-return]


def settings(name: str, config: OptimConfig) -> tuple[float, float]:
    """Learning rate and weight decay of a parameter, by its name."""
    if name.endswith("bias"):
        return config.lr * config.bias_lr, 0.0
    return config.lr, config.weight_decay * (config.classifier_decay if name.startswith("classifier") else 1.0)


def sgd(model: Small, dataset: Dataset, config: OptimConfig, factors: list[float]) -> dict[str, Tensor]:
    """Momentum: v = m v + g; w = w - lr v. Nesterov looks ahead: w = w - lr (g + m v)."""
    weights = {name: p.detach().double() for name, p in model.double().named_parameters()}
    velocity = {name: torch.zeros_like(w) for name, w in weights.items()}
    steps = iter(factors)
    for epoch in range(2):
        for x, y in Batches(dataset.train, 10, seed=0).epoch(epoch):
            leaves = {name: w.clone().requires_grad_() for name, w in weights.items()}
            F.cross_entropy(torch.func.functional_call(model, leaves, x.double()), y).backward()
            gradients = {name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
            norm = float(sum(g.square().sum() for g in gradients.values())) ** 0.5
            shrink = 1.0 if config.clip is None else min(1.0, config.clip / norm)
            factor = next(steps)
            for name, w in weights.items():
                lr, decay = settings(name, config)
                g = shrink * gradients[name] + decay * w
                velocity[name] = config.momentum * velocity[name] + g
                move = g + config.momentum * velocity[name] if config.nesterov else velocity[name]
                weights[name] = w - factor * lr * move
    return weights


def trained(config: TrainConfig, path: Path, dataset: Dataset) -> Small:
    torch.manual_seed(1)
    model = Small()
    train(config, path, model=model, dataset=dataset)
    return model


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"momentum": 0.0},
        {"nesterov": True},
        {"weight_decay": 0.05},
        {"weight_decay": 0.05, "bias_lr": 2.0, "classifier_decay": 10.0, "nesterov": True},
        {"clip": 0.2},
    ],
)
def test_sgd_is_the_textbook_update(changes: dict[str, Any], tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    config = configure(optim=replace(OptimConfig(lr=0.1), **changes), schedule=ScheduleConfig("exponential", 0.5))
    model = trained(config, tmp_path / "run", tiny)
    torch.manual_seed(1)
    slow = sgd(Small(), tiny, config.optim, [1.0] * 12 + [0.5] * 12)
    for name, weight in model.named_parameters():
        torch.testing.assert_close(weight.double(), slow[name], rtol=1e-4, atol=1e-6)


def test_adam_is_the_textbook_update() -> None:
    config = OptimConfig("adam", lr=0.01, weight_decay=0.1)
    model = nn.Linear(3, 2)
    optimiser = make_optimiser(model, config)
    w, m, v = (model.weight.detach().double(), torch.zeros(2, 3).double(), torch.zeros(2, 3).double())
    for step in range(1, 6):
        gradient = torch.randn(2, 3)
        model.weight.grad, model.bias.grad = gradient.clone(), torch.zeros(2)
        optimiser.step()
        g = gradient.double()
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        w = w - 0.01 * 0.1 * w - 0.01 * (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-8)
    torch.testing.assert_close(model.weight.double(), w, rtol=1e-5, atol=1e-7)


def test_parameters_with_the_same_rules_are_one_group_in_their_order() -> None:
    model = Small()
    names = {id(p): name for name, p in model.named_parameters()}
    rules = OptimConfig(lr=0.1, weight_decay=0.01, bias_lr=2.0, classifier_decay=10.0)
    apart = make_optimiser(model, rules).param_groups
    together = make_optimiser(model, OptimConfig(lr=0.1, weight_decay=0.0)).param_groups
    assert (len(apart), len(together)) == (3, 1)
    assert [names[id(p)] for group in apart for p in group["params"]] == [names[id(p)] for p in together[0]["params"]]


def test_weights_and_biases_are_each_in_one_group_with_their_own_rate_and_decay() -> None:
    config = OptimConfig(lr=0.1, weight_decay=0.01, bias_lr=2.0, classifier_decay=10.0)
    model = Small()
    groups = make_optimiser(model, config).param_groups
    found = {id(p): (group["lr"], group["weight_decay"]) for group in groups for p in group["params"]}
    assert sum(len(group["params"]) for group in groups) == len(found) == 4
    assert {name: found[id(p)] for name, p in model.named_parameters()} == {
        name: pytest.approx(settings(name, config)) for name, _ in model.named_parameters()
    }


def test_the_schedule_scales_every_group_from_its_own_rate() -> None:
    optimiser = make_optimiser(Small(), OptimConfig(lr=0.1, weight_decay=0.0, bias_lr=2.0))
    for factor in (0.5, 0.25, 1.0):
        set_learning_rate(optimiser, factor)
        rates = {group["name"]: group["lr"] for group in optimiser.param_groups}
        assert rates == {"weights": 0.1 * factor, "biases": 0.2 * factor, "classifier": 0.1 * factor}


def test_a_frozen_parameter_stays(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    model = Small()
    model.hidden.weight.requires_grad_(False)
    before = model.hidden.weight.clone()
    train(configure(), tmp_path / "run", model=model, dataset=tiny, progress=TrainingProgress())
    assert torch.equal(model.hidden.weight, before)


def test_biases_may_decay_and_the_output_layer_may_have_a_rate_of_its_own() -> None:
    config = OptimConfig("sgd", 0.5, weight_decay=0.1, bias_lr=2.0, bias_decay=1.0, classifier_lr=0.1)
    for model, last in ((Small(), "classifier"), (create_model("nin"), "layers.conv9")):
        rules = {
            id(parameter): (group["lr"], group["weight_decay"])
            for group in make_optimiser(model, config).param_groups
            for parameter in group["params"]
        }
        for name, parameter in model.named_parameters():
            rate = 0.5 * (2 if name.endswith("bias") else 1) * (0.1 if name.startswith(last) else 1)
            assert rules[id(parameter)] == (pytest.approx(rate), pytest.approx(0.1)), name
    with pytest.raises(UserError, match="ends in a linear layer or a convolution"):
        make_optimiser(nn.BatchNorm1d(3), config)
