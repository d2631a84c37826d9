"""The average of the weights: what is measured and kept, and that a killed run has the same one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from verydeep.data import Dataset
from verydeep.training import EpochMetrics, OptimConfig, ProcessGroup, Run, evaluate, resume, train
from verydeep.training.step._average import WeightAverage

ALONE = ProcessGroup(0, 1, torch.device("cpu"))


def outcome(run: Run) -> tuple[list[EpochMetrics], bytes]:
    lines = [replace(line, seconds=0) for line in run.metrics]
    return lines, (run.path / "model.safetensors").read_bytes()


def test_the_share_of_a_weight_halves_in_a_half_life_once_the_average_is_old() -> None:
    model = nn.Linear(1, 1)
    average = WeightAverage(model, half_life=20)
    nn.init.constant_(model.weight, 1.0)
    average.update(0)
    assert average.averaged["weight"].item() == 1  # of the initial weight nothing is left
    nn.init.constant_(model.weight, 0.0)
    for step in range(10_000, 10_020):
        average.update(step)
    assert average.averaged["weight"].item() == pytest.approx(0.5, rel=1e-5)


def test_a_young_average_covers_the_last_ninth_of_training() -> None:
    model = nn.Linear(1, 1)
    average = WeightAverage(model, half_life=1e9)
    for step in range(1000):
        nn.init.constant_(model.weight, float(step))
        average.update(step)
    assert average.averaged["weight"].item() == pytest.approx(900, abs=5)


def test_the_module_has_its_own_weights_again_afterwards_also_tied_ones() -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    second.weight = first.weight
    model = nn.Sequential(first, second, nn.BatchNorm1d(2))
    average = WeightAverage(model, 5)
    before = first.weight.detach().clone()
    nn.init.constant_(first.weight, 7.0)
    live = {name: value.clone() for name, value in model.state_dict().items()}
    with average.in_place():
        assert torch.equal(second.weight, before)
    assert all(torch.equal(value, live[name]) for name, value in model.state_dict().items())


def test_the_average_is_what_is_measured_and_kept(tmp_path: Path, unvalidated: Dataset, configure: Any) -> None:
    config = configure(ema_half_life=1.0, epochs=3, optim=OptimConfig(lr=0.5))
    run = train(config, tmp_path / "run", dataset=unvalidated)
    last = train(configure(epochs=3, optim=OptimConfig(lr=0.5)), tmp_path / "last", dataset=unvalidated)
    assert evaluate(run.model, unvalidated.test, ALONE).loss == run.metrics[-1].test_loss
    assert run.metrics[-1].loss == pytest.approx(last.metrics[-1].loss, rel=1e-4)  # training itself is not changed
    assert run.metrics[-1].test_loss != last.metrics[-1].test_loss
    kept, live = (load_file(each.path / "model.safetensors") for each in (run, last))
    assert any(not torch.equal(kept[name], live[name]) for name in kept)


@pytest.mark.parametrize("steps", [7, 12, 23])
def test_a_killed_run_goes_on_with_the_same_average(
    steps: int, tmp_path: Path, tiny: Dataset, configure: Any, stop_after: Any
) -> None:
    config = configure(ema_half_life=0.5, epochs=2, label_smoothing=0.1)
    whole = train(config, tmp_path / "whole", dataset=tiny)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "run", dataset=tiny, progress=stop_after(steps))
    assert outcome(resume(tmp_path / "run", dataset=tiny)) == outcome(whole)
