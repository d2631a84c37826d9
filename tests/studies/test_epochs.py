"""Trainings that pause after some epochs and continue later, in one process."""

from dataclasses import replace
from pathlib import Path

import pytest

from verydeep.data import DataConfig
from verydeep.errors import UserError
from verydeep.studies import Group, start_study, work
from verydeep.training import EpochMetrics, ModelConfig, OptimConfig, Run, TrainConfig

CONFIG = TrainConfig(DataConfig("digits"), ModelConfig("plain-mlp", depth=3, width=8), epochs=2, batch_size=100)


def test_a_training_pauses_where_it_is_told_and_continues_from_there(tmp_path: Path) -> None:
    half, lines = Group("half", CONFIG, seeds=(0,), epochs=1), list[str]()
    study = start_study(tmp_path, [half])
    assert work(study, report=lines.append)
    assert [line.epoch for line in study.records()[0].curve] == [1]
    study = start_study(tmp_path, [replace(half, epochs=None)])
    assert work(study, report=lines.append)
    assert lines == ["half/seed-0: paused after 1 epoch", "half/seed-0: finished after 2 epochs"]
    (record,) = study.records()
    assert (record.status, [line.epoch for line in record.curve], record.attempts) == ("finished", [1, 2], 2)
    whole = start_study(tmp_path / "whole", [Group("whole", CONFIG, seeds=(0,))])
    assert work(whole)
    assert _values(whole.records()[0].curve) == _values(record.curve)


def test_a_training_that_diverges_in_its_last_epoch_before_a_pause_is_diverged(tmp_path: Path) -> None:
    config = replace(CONFIG, model=ModelConfig("plain-mlp", depth=10, width=8), optim=OptimConfig(lr=1e6))
    study = start_study(tmp_path, [Group("wild", config, seeds=(0,), epochs=1)])
    assert work(study)
    (record,) = study.records()
    assert (record.status, record.epochs, record.value) == ("diverged", 1, None)


def test_a_run_continues_with_other_threads_but_not_with_other_settings(tmp_path: Path) -> None:
    assert work(start_study(tmp_path, [Group("run", CONFIG, epochs=1)]))
    assert work(start_study(tmp_path, [Group("run", replace(CONFIG, device="cpu", threads=2))]))
    assert len(Run.load(tmp_path / "run").metrics) == 2
    changed = start_study(tmp_path, [Group("run", replace(CONFIG, batch_size=50))], restart_changed=True)
    with pytest.raises(UserError, match="was started with other settings; rename or delete it"):
        work(changed)


def _values(curve: list[EpochMetrics]) -> list[EpochMetrics]:
    return [replace(line, seconds=0.0) for line in curve]
