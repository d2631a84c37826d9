"""Short epochs are reported to the storage several at a time; what one reads from it is the same."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from verydeep.data import DataConfig
from verydeep.studies import Budget, Choices, Group, Halving, Sampling, Stages, Study, start_study, work
from verydeep.studies._claim import claim_training, report_epochs
from verydeep.studies.worker import _worker
from verydeep.training import EpochMetrics, ModelConfig, OptimConfig, TrainConfig

CONFIG = TrainConfig(
    DataConfig("digits", validation=0.2),
    ModelConfig("highway-mlp", depth=2, width=4),
    OptimConfig("sgd", lr=0.1),
    epochs=9,
    batch_size=400,
    threads=1,
)
SPACE: Any = {"optim.lr": Choices((0.5, 0.001, 0.01))}
SAMPLING = Sampling(SPACE, trials=4)
GROUPS = {
    "seeds": Group("g", CONFIG, seeds=(0, 1)),
    "stopped early": Group("g", replace(CONFIG, patience=1, optim=OptimConfig("sgd", lr=1e-9)), seeds=(0,)),
    "halving": Group("g", CONFIG, sampling=SAMPLING, halving=Halving(1, 3)),
    "stages": Group("g", CONFIG, sampling=SAMPLING, halving=Stages((2, 5, 9), (4, 2, 1))),
}


def results(study: Study) -> list[tuple[Any, ...]]:
    return [
        (r.name, r.status, r.value, r.epochs, r.loss, [replace(line, seconds=0) for line in r.curve])
        for r in study.records()
    ]


@pytest.mark.parametrize("kind", GROUPS)
def test_records_do_not_depend_on_how_many_epochs_are_reported_at_a_time(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, written = {}, {}
    for pause in (0.0, math.inf):
        monkeypatch.setattr(_worker, "_REPORT_EVERY", pause)
        study = start_study(tmp_path / str(pause), [GROUPS[kind]])
        assert work(study)
        found[pause] = results(study)
        written[pause] = len((study.folder / "journal.log").read_text().splitlines())
    assert found[0.0] == found[math.inf]
    assert all(len(curve) == epochs > 0 for _, _, _, epochs, _, curve in found[0.0])
    assert written[math.inf] < written[0.0]


def test_a_budget_of_epochs_is_still_kept_to_the_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_worker, "_REPORT_EVERY", math.inf)
    study = start_study(tmp_path / "study", [GROUPS["seeds"]])
    assert not work(study, budget=Budget(epochs=5))
    assert study.epochs_trained() == 5
    assert work(study)
    assert [record.epochs for record in study.records()] == [9, 9]


def test_epochs_can_be_reported_one_by_one_and_together(tmp_path: Path) -> None:
    study = start_study(tmp_path / "study", [Group("g", CONFIG)])
    claim = claim_training(study, "worker")
    assert claim is not None
    lines = [EpochMetrics(epoch, loss=1 / epoch, valid_accuracy=epoch / 10, valid_loss=1.0) for epoch in range(1, 8)]
    for part in (lines[:1], lines[1:4], lines[4:5], lines[5:]):
        report_epochs(study, claim, *part)
    attempts = study.attempts()["g"]
    assert study.records()[0].curve == lines
    assert (attempts.epochs, attempts.value_at(3), attempts.best_until(3)) == (7, 0.3, -0.3)
