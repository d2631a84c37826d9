"""Companion losses on hidden layers, and the squared hinge loss, for every kind of network."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from verydeep.data import DataConfig, Dataset, Split, Task
from verydeep.errors import UserError
from verydeep.models import create_model
from verydeep.objectives import Classification, Regression
from verydeep.training import CompanionConfig, ModelConfig, OptimConfig, Run, TrainConfig, resume, train
from verydeep.training.step._companion import CompanionLoss
from verydeep.training.step._loss import FusedLoss, TrainingLoss
from verydeep.training.step._optimiser import make_optimiser


def pictures(size: int = 8, channels: int = 1) -> Dataset:
    random = torch.Generator().manual_seed(0)
    y = torch.arange(60) % 3
    x = torch.randn(60, channels, size, size, generator=random) + y.view(-1, 1, 1, 1)
    return Dataset("pictures", Split(x, y), None, Split(x, y), ("a", "b", "c"))


NETWORKS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "highway-mlp": ({"depth": 6, "width": 8}, ("layer2", "layer5")),
    "plain-mlp": ({"depth": 4, "width": 8}, ("layer1", "layer4")),
    "residual-mlp": ({"depth": 4, "width": 8}, ("layer3",)),
    "highway-conv": ({"depth": 4, "width": 4}, ("conv1", "highway2")),
}


def settings(name: str, **changes: Any) -> TrainConfig:
    model, layers = NETWORKS[name]
    config = TrainConfig(
        DataConfig("pictures"),
        ModelConfig(name, **model),
        OptimConfig("sgd", 0.02),
        companion=CompanionConfig(layers, (0.5,), until=2),
        epochs=3,
        batch_size=20,
        threads=1,
    )
    return replace(config, **changes)


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_of_companion_losses_are_those_of_finite_differences(name: str) -> None:
    model, layers = NETWORKS[name]
    network = create_model(name, input_shape=(1, 8, 8), classes=3, dtype=torch.float64, **model).eval()
    x, y = torch.randn(4, 1, 8, 8, dtype=torch.float64), torch.tensor([0, 1, 2, 1])
    objective = Classification(loss="squared-hinge")
    loss = CompanionLoss(settings(name), objective, network, TrainingLoss(objective, network), nullcontext)
    total = loss(x, y, 0, 0.0)[0]
    total.backward()
    outputs, values = network.forward_hidden(x, layers)
    heads = sum(0.5 * objective.loss(loss.companions[each](values[each].flatten(1)), y) for each in layers)
    torch.testing.assert_close(total, objective.loss(outputs, y) + heads)
    gradients = [parameter.grad for parameter in (*network.parameters(), *loss.companions.parameters())]
    for parameter, gradient in zip((*network.parameters(), *loss.companions.parameters()), gradients, strict=True):
        index = int(parameter.numel() * 0.6)
        flat = parameter.detach().view(-1)
        with torch.no_grad():
            before = flat[index].item()
            found = []
            for step in (1e-6, -1e-6):
                flat[index] = before + step
                found.append(loss(x, y, 0, 0.0)[0].item())
            flat[index] = before
        assert gradient is not None
        expected = (found[0] - found[1]) / 2e-6
        assert gradient.view(-1)[index].item() == pytest.approx(expected, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_kind_of_network_trains_with_companions_which_are_then_discarded(name: str, tmp_path: Path) -> None:
    run = train(settings(name), tmp_path / "run", dataset=pictures())
    assert len(run.metrics) == 3
    assert set(load_file(run.path / "model.safetensors")) == set(run.model.state_dict())


def test_companions_are_switched_off_after_their_epochs() -> None:
    network, objective = (
        create_model("highway-mlp", depth=6, width=8, input_shape=(1, 8, 8), classes=3),
        Classification(),
    )
    alone = FusedLoss(objective, network)  # type: ignore[arg-type]
    loss = CompanionLoss(settings("highway-mlp"), objective, network, alone, nullcontext)
    x, y = torch.randn(4, 1, 8, 8), torch.tensor([0, 1, 2, 1])
    for epoch, on in ((0, True), (1, True), (2, False)):
        network.zero_grad()
        total, sums = loss.backward(x, y, 1.0, epoch, 0.0)
        assert (total > sums[0] + 0.1) == on  # the sums are those of the network alone
        assert all((p.grad is not None) == on for p in loss.companions.parameters())


def test_a_companion_changes_the_weights_and_without_weight_it_does_not(tmp_path: Path) -> None:
    config = settings("highway-mlp")
    found = {}
    for name, companion in {
        "none": CompanionConfig(),
        "weightless": replace(config.companion, weights=(0.0,), until=None),
        "off": replace(config.companion, until=1),
        "on": replace(config.companion, until=None),
    }.items():
        run = train(replace(config, companion=companion), tmp_path / name, dataset=pictures())
        found[name] = load_file(run.path / "model.safetensors")["stack.weight"]
    torch.testing.assert_close(found["weightless"], found["none"], rtol=1e-3, atol=1e-6)
    assert (found["on"] - found["none"]).abs().max() > 1e-4
    assert (found["on"] - found["off"]).abs().max() > 1e-5


@pytest.mark.parametrize("steps", [2, 5, 8])  # 3 steps per epoch; two epochs with companions
def test_a_killed_run_with_companions_continues_to_the_same_bits(steps: int, tmp_path: Path, stop_after: Any) -> None:
    config = settings("highway-mlp", optim=OptimConfig("muon", 0.02, nesterov=True))
    whole = train(config, tmp_path / "whole", dataset=pictures())
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "killed", dataset=pictures(), progress=stop_after(steps))
    resume(tmp_path / "killed", dataset=pictures())
    same = [load_file(tmp_path / each / "model.safetensors") for each in ("whole", "killed")]
    assert all(torch.equal(same[0][key], same[1][key]) for key in same[0])
    assert len(whole.metrics) == 3


def test_the_squared_hinge_loss_is_the_definition() -> None:
    """Lee et al.: the squares of max(0, 1 - z) of the correct class and of max(0, 1 + z) of the others."""
    z, y = torch.tensor([[2.0, -0.5, 0.25], [0.5, 0.5, -3.0]]), torch.tensor([0, 2])
    objective = Classification(loss="squared-hinge")
    expected = [0.5**2 + 1.25**2, 1.5**2 + 1.5**2 + 4.0**2]
    assert objective.losses(z, y).tolist() == pytest.approx(expected)
    assert objective.loss(z, y).item() == pytest.approx(sum(expected))
    weighted = Classification(class_weight=torch.tensor([1.0, 1.0, 3.0]), loss="squared-hinge")
    assert weighted.training_loss(z, y).item() == pytest.approx(expected[0] + 3 * expected[1])
    assert weighted.loss(z, y).item() == pytest.approx(sum(expected))
    assert objective.guess_loss(10) == 10
    assert torch.autograd.gradcheck(lambda z: objective.loss(z, y), (z.double().requires_grad_(),))


def test_a_network_learns_by_the_squared_hinge_loss_and_reports_it(tmp_path: Path) -> None:
    config = settings(
        "highway-mlp", loss="squared-hinge", companion=CompanionConfig(), epochs=15, evaluate_test="epoch"
    )
    run = train(config, tmp_path / "run", dataset=pictures())
    losses = [metrics.loss or 0.0 for metrics in run.metrics]
    assert losses[-1] < 0.5 * losses[0]
    assert run.metrics[-1].test_loss is not None
    assert Run.load(run.path).config.loss == "squared-hinge"


def test_companions_take_regressions_too(tmp_path: Path) -> None:
    x = torch.randn(40, 5)
    split = Split(x, x[:, :1])
    data = Dataset("numbers", split, None, split, (), task=Task("regression", ("y",), mean=(0.0,), deviation=(1.0,)))
    config = settings("plain-mlp", epochs=2)
    assert len(train(config, tmp_path / "run", dataset=data).metrics) == 2


def test_classifiers_of_companions_may_learn_more_slowly() -> None:
    extra = nn.ModuleDict({"conv1": nn.Linear(3, 2)})
    optimiser = make_optimiser(nn.Linear(2, 2), OptimConfig("sgd", 0.5, weight_decay=0.0), extra, 0.01)
    rates = {id(p): group["lr"] for group in optimiser.param_groups for p in group["params"]}
    assert rates[id(extra["conv1"].weight)] == pytest.approx(0.005)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"companion": CompanionConfig(("layer9",))}, "unknown layer in companion.hidden_layers 'layer9'"),
        ({"compile": True}, "companion.hidden_layers cannot be used with compile"),
        ({"model": ModelConfig("recurrent-highway"), "companion": CompanionConfig(("layer1",))}, "unknown layer"),
        ({"loss": "huber"}, "loss is for regression, but this is a classification task"),
        ({"loss": "squared-hinge", "label_smoothing": 0.1}, "label_smoothing is for cross-entropy"),
    ],
)
def test_what_cannot_be_trained_is_refused(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        train(settings("highway-mlp", **changes), tmp_path / "run", dataset=pictures())
    assert words in str(error.value)
    assert len(str(error.value).splitlines()) <= 2


def test_a_module_of_one_s_own_cannot_have_companions(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    with pytest.raises(UserError, match="needs one of verydeep's networks"):
        train(settings("highway-mlp"), tmp_path / "run", model=model, dataset=pictures())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"hidden_layers": ("a", "a")}, "names a layer twice"),
        ({"hidden_layers": ("a", "b"), "weights": (1.0, 2.0, 3.0)}, "one for each of the 2 layers; got 3"),
        ({"hidden_layers": ("a",), "weights": (-1.0,)}, "must be 0 or more"),
        ({"hidden_layers": ("a",), "until": 0}, "at least 1"),
        ({"until": 3}, "companion needs companion.hidden_layers"),
    ],
)
def test_impossible_companions_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        CompanionConfig(**wrong)


def test_a_regression_has_no_hinge() -> None:
    with pytest.raises(UserError, match="loss must be one of"):
        Regression(1, "squared-hinge")  # type: ignore[arg-type]
