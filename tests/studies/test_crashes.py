"""Trainings that crash, fail, or were trained elsewhere for another number of epochs."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verydeep.data import DataConfig
from verydeep.errors import UserError
from verydeep.studies import Group, Study, run_study, start_study, work
from verydeep.studies.worker import _worker
from verydeep.studies.worker._training import train_run
from verydeep.studies.worker._worker import TrainingCrashed
from verydeep.training import ModelConfig, OptimConfig, TrainConfig, train

CONFIG = TrainConfig(
    DataConfig("digits"), ModelConfig(depth=2, width=4), OptimConfig(lr=0.1), epochs=2, batch_size=100, threads=1
)


def seeds(folder: Path, *numbers: int, epochs: int = 2) -> Study:
    return start_study(folder, [Group("", TrainConfig(**vars(CONFIG) | {"epochs": epochs}), seeds=numbers)])


def crashing(times: int, train_run: Callable[..., Any]) -> Callable[..., Any]:
    left = iter(range(times))

    def crash(*arguments: Any) -> Any:
        if next(left, None) is not None:
            raise RuntimeError("no luck\nat all")
        return train_run(*arguments)

    return crash


@pytest.mark.slow
def test_three_crashes_end_a_training_until_it_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = seeds(tmp_path, 0)
    monkeypatch.setattr(_worker, "train_run", crashing(4, train_run))
    for _ in range(3):
        with pytest.raises(TrainingCrashed, match="seed-0"):
            work(study)
    assert work(study)
    [record] = study.records()
    assert (record.status, record.attempts) == ("failed", 4)
    assert record.reason == "3 workers died while training it; RuntimeError: no luck"

    study.retry_failed()
    with pytest.raises(TrainingCrashed):
        work(study)  # the fourth crash is the first since then
    assert work(study)
    assert study.records()[0].status == "finished"


BROKEN = """
from pathlib import Path

open_path = Path.open

def open_or_fail(path, *args, **options):
    if path.name == "metrics.jsonl" and path.parent.name == "seed-0":
        raise ZeroDivisionError("nobody expects this")
    return open_path(path, *args, **options)

Path.open = open_or_fail
"""


@pytest.mark.slow
def test_a_training_that_crashes_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(BROKEN)
    monkeypatch.setenv("PYTHONPATH", str(broken), prepend=os.pathsep)
    study = seeds(tmp_path / "seeds", 0, 1)
    assert run_study(study, jobs=1) == "complete"
    records = study.records()
    assert [record.status for record in records] == ["failed", "finished"]
    assert "3 workers died while training it; ZeroDivisionError" in records[0].reason
    logs = [file.read_text() for file in (tmp_path / "seeds" / "workers").glob("*.log")]
    assert sum("Traceback" in log for log in logs) == 3


@pytest.mark.parametrize("before", [3, 9])
def test_a_run_that_has_not_ended_gets_the_epochs_of_its_study(tmp_path: Path, before: int) -> None:
    run = train(TrainConfig(**vars(CONFIG) | {"epochs": 3}), tmp_path / "seed-0")
    (run.path / "summary.json").unlink()
    config = run.path / "config.json"
    config.write_text(config.read_text().replace('"epochs": 3', f'"epochs": {before}'))
    assert work(seeds(tmp_path, 0, epochs=4))
    once = train(TrainConfig(**vars(CONFIG) | {"epochs": 4}), tmp_path / "once")
    assert len(run.metrics) == 4
    assert (run.path / "model.safetensors").read_bytes() == (once.path / "model.safetensors").read_bytes()


def test_a_run_that_has_more_epochs_than_its_study_is_trained_to_its_own_end(tmp_path: Path) -> None:
    run = train(TrainConfig(**vars(CONFIG) | {"epochs": 4}), tmp_path / "seed-0")
    (run.path / "summary.json").unlink()
    study = seeds(tmp_path, 0, epochs=3)
    assert work(study)
    assert [(record.status, record.epochs) for record in study.records()] == [("finished", 4)]
    assert run.summary is not None


def test_a_result_from_elsewhere_counts_until_there_are_to_be_more_epochs(tmp_path: Path) -> None:
    run = train(CONFIG, tmp_path / "seed-0")
    study = seeds(tmp_path, 0, epochs=9)
    study.add_result("seed-0", "stopped early", run.metrics, of=9)
    assert study.unfinished() == 0
    seeds(tmp_path, 0, epochs=10)
    assert study.unfinished() == 1


def test_a_new_study_does_not_open_an_old_one(tmp_path: Path) -> None:
    seeds(tmp_path / "study", 0)
    with pytest.raises(UserError, match="already has a study 'study'; join it with verydeep worker"):
        start_study(tmp_path / "study", [Group("", CONFIG, seeds=(0, 1))], new=True)
    assert seeds(tmp_path / "study", 0).unfinished() == 1


def test_the_test_result_counts_after_a_crash_between_the_last_epoch_and_the_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TrainConfig(**vars(CONFIG) | {"evaluate_test": "end"})
    study = start_study(tmp_path, [Group("", config, seeds=(0,))])

    def crash(*arguments: Any) -> Any:
        train_run(*arguments)
        (tmp_path / "seed-0" / "summary.json").unlink()
        raise RuntimeError("after the last epoch was reported")

    with monkeypatch.context() as patch:
        patch.setattr(_worker, "train_run", crash)
        with pytest.raises(TrainingCrashed):
            work(study)
    assert study.records()[0].curve[-1].test_accuracy is None
    assert work(study)
    assert study.records()[0].curve[-1].test_accuracy is not None
