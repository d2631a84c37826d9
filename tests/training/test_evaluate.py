import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from verydeep.data import Dataset, Split
from verydeep.models import create_model
from verydeep.training import ProcessGroup, evaluate

ALONE = ProcessGroup(0, 1, torch.device("cpu"))


@pytest.fixture
def network() -> nn.Module:
    return create_model("highway-mlp", depth=3, width=6, input_shape=(1, 4, 4), classes=3)


@pytest.mark.parametrize("samples", [1, 115, 1000, 2345])
def test_it_equals_a_loop_over_single_samples(samples: int, network: nn.Module) -> None:
    split = Split(torch.randn(samples, 1, 4, 4), torch.randint(0, 3, (samples,)))
    loss, right = 0.0, 0
    with torch.no_grad():
        for x, y in zip(split.x, split.y, strict=True):
            logits = network(x[None])
            loss += F.cross_entropy(logits, y[None]).item()
            right += int(logits.argmax() == y)
    found = evaluate(network, split, ALONE)
    assert found.loss == pytest.approx(loss / samples, rel=1e-5)
    assert found.accuracy == right / samples


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_is_restored_and_dropout_is_off(training: bool, tiny: Dataset, network: nn.Module) -> None:
    dropped = nn.Sequential(nn.Dropout(0.9), network).train(training)
    assert evaluate(dropped, tiny.test, ALONE).values.equal(evaluate(network, tiny.test, ALONE).values)
    assert dropped.training is dropped[0].training is training


def test_the_mode_is_restored_when_the_model_fails(tiny: Dataset) -> None:
    model = nn.Sequential(nn.Linear(1, 1)).train()
    with pytest.raises(RuntimeError):
        evaluate(model, tiny.test, ALONE)
    assert model.training


def test_running_means_are_not_changed(tiny: Dataset) -> None:
    model = nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(16, 3))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    evaluate(model, tiny.test, ALONE)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_processes_share_the_samples_and_lose_none(tiny: Dataset, network: nn.Module, monkeypatch: Any) -> None:
    parts: list[torch.Tensor] = []

    def noted(self: ProcessGroup, value: torch.Tensor) -> torch.Tensor:
        parts.append(value.clone())
        return value

    monkeypatch.setattr(ProcessGroup, "sum", noted)
    for rank in range(3):
        evaluate(network, tiny.train, ProcessGroup(rank, 3, torch.device("cpu")))
    loss, right = torch.stack(parts).sum(0).tolist()
    whole = evaluate(network, tiny.train, ALONE)
    assert loss / 115 == pytest.approx(whole.loss)
    assert right / 115 == pytest.approx(whole.accuracy)
    assert math.isfinite(loss)
