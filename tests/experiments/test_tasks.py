"""Trials trained side by side."""

from dataclasses import replace
from pathlib import Path

from verydeep.experiments._fig1 import QUICK, Network
from verydeep.experiments._tasks import Job, _train
from verydeep.search import Data
from verydeep.training import OptimConfig


def test_a_trial_that_diverges_in_the_last_epoch_of_its_stage_is_diverged(tmp_path: Path) -> None:
    config = replace(QUICK.base(Network("plain", 10)), optim=OptimConfig(lr=1e6))
    outcome = _train(Job(config, tmp_path / "run", 1), Data(None))
    assert outcome.status == "diverged"
    assert len(outcome.metrics) == 1


def test_a_trial_that_does_not_is_paused_there(tmp_path: Path) -> None:
    outcome = _train(Job(QUICK.base(Network("plain", 10)), tmp_path / "run", 1), Data(None))
    assert outcome.status == "trained"
    assert [line["epoch"] for line in outcome.metrics] == [1]


def test_every_epoch_is_told_also_those_of_an_earlier_attempt(tmp_path: Path) -> None:
    config, told = QUICK.base(Network("plain", 10)), list[int]()
    _train(Job(config, tmp_path / "run", 1), Data(None), lambda metrics: told.append(metrics["epoch"]))
    _train(Job(config, tmp_path / "run", 2), Data(None), lambda metrics: told.append(metrics["epoch"]))
    assert told == [1, 1, 2]
