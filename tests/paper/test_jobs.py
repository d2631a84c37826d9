"""Many trainings in parallel worker processes."""

from dataclasses import replace
from pathlib import Path

import pytest

from verydeep.errors import UserError
from verydeep.paper import QUICK, Fig1Network, Job
from verydeep.paper._jobs import _receive, _send_job, _train, _Worker
from verydeep.search import DatasetCache
from verydeep.training import EpochMetrics, OptimConfig


def test_a_trial_that_diverges_in_the_last_epoch_of_its_stage_is_diverged(tmp_path: Path) -> None:
    config = replace(QUICK.base(Fig1Network("plain", 10)), optim=OptimConfig(lr=1e6))
    outcome = _train(Job(config, tmp_path / "run", 1), DatasetCache(None))
    assert outcome.status == "diverged"
    assert len(outcome.metrics) == 1


def test_a_trial_that_does_not_diverge_is_paused_there(tmp_path: Path) -> None:
    outcome = _train(Job(QUICK.base(Fig1Network("plain", 10)), tmp_path / "run", 1), DatasetCache(None))
    assert outcome.status == "trained"
    assert [line.epoch for line in outcome.metrics] == [1]


def test_every_epoch_is_reported_including_those_of_an_earlier_attempt(tmp_path: Path) -> None:
    config, epochs = QUICK.base(Fig1Network("plain", 10)), list[int]()
    _train(Job(config, tmp_path / "run", 1), DatasetCache(None), lambda metrics: epochs.append(metrics.epoch))
    _train(Job(config, tmp_path / "run", 2), DatasetCache(None), lambda metrics: epochs.append(metrics.epoch))
    assert epochs == [1, 1, 2]


def test_a_run_continues_on_any_machine_but_only_with_its_own_settings(tmp_path: Path) -> None:
    config = QUICK.config(Fig1Network("plain", 10), 0)
    _train(Job(config, tmp_path / "run", 1), DatasetCache(None))
    outcome = _train(Job(replace(config, device="auto", threads=2), tmp_path / "run", 2), DatasetCache(None))
    assert [line.epoch for line in outcome.metrics] == [1, 2]
    with pytest.raises(UserError, match="was started with other settings"):
        _train(Job(replace(config, seed=7), tmp_path / "run", 2), DatasetCache(None))


@pytest.mark.slow
def test_a_process_killed_while_idle_is_replaced(tmp_path: Path) -> None:
    worker = _Worker(None)
    worker.process.kill()
    worker.process.join()
    other = _send_job(worker, Job(QUICK.base(Fig1Network("plain", 10)), tmp_path / "run", 1), None)
    while isinstance(outcome := _receive(other), EpochMetrics):
        continue
    other.stop()
    assert outcome is not None
    assert (other is not worker, outcome.status) == (True, "trained")
