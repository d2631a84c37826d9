"""Stages: which trainings of a group are trained further."""

import math
from dataclasses import dataclass
from pathlib import Path

from verydeep.data import DataConfig
from verydeep.studies import Choices, Group, Sampling, Stages, open_study, stage_members, start_study
from verydeep.training import EpochMetrics, TrainConfig

STAGES = Stages(epochs=(1, 3), trainings=(4, 2))


@dataclass
class Curve:
    """A training that was trained for as many epochs as it has values."""

    values: list[float]

    def has_reached(self, epoch: int) -> bool:
        return len(self.values) >= epoch

    def best_until(self, epoch: int) -> float | None:
        return min(self.values[:epoch])


def test_the_best_of_a_complete_stage_enter_the_next() -> None:
    curves = {number: Curve([value]) for number, value in enumerate((0.5, 0.1, 0.9, 0.3))}
    assert stage_members(STAGES, 0, curves) == [0, 1, 2, 3]
    assert stage_members(STAGES, 1, curves) == [1, 3]
    curves[2] = Curve([])
    assert stage_members(STAGES, 1, curves) is None


def test_rounded_values_name_the_same_trainings() -> None:
    """Recorded results have five digits, and on another processor the last digits differ."""
    values = (2.30101, 2.301012, 2.3010149, 2.301008)
    exact = {number: Curve([value]) for number, value in enumerate(values)}
    rounded = {number: Curve([float(f"{value:.5g}")]) for number, value in enumerate(values)}
    assert stage_members(STAGES, 1, exact) == stage_members(STAGES, 1, rounded) == [0, 1]


def test_a_result_from_elsewhere_counts_like_one_that_was_trained_here(tmp_path: Path) -> None:
    config = TrainConfig(DataConfig("digits"), epochs=3)
    group = Group("g", config, sampling=Sampling({"optim.lr": Choices((0.1, 0.2))}, trials=4), halving=STAGES)
    study = start_study(tmp_path, [group], metric="loss")
    lines = [EpochMetrics(1, loss=0.5, test_accuracy=0.9, seconds=2.0), EpochMetrics(2, loss=0.7, seconds=4.0)]
    for number in range(3):
        study.add_result(f"g/000{number}", "paused", lines)
    study.add_result("g/0003", "diverged", [EpochMetrics(1, loss=math.inf, seconds=1.0)])
    first, *_, last = open_study(tmp_path).records()
    assert (first.status, first.epochs, first.value, first.seconds, first.goal) == ("waiting", 2, 0.5, 4.0, 3)
    assert first.curve == lines
    assert (last.status, last.epochs, last.value) == ("diverged", 1, None)
    assert study.epochs_trained() == 3 * 2 + 1
    tried = study.attempts()["g/0000"]
    assert (tried.best_until(1), tried.value_at(2), tried.value_at(3)) == (0.5, 0.7, None)
    assert [task.state for task in study.tasks()] == ["ready", "ready", "done", "done"]
