"""Studies that stay open: groups are added while workers train, depending on results."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from verydeep.cli import main
from verydeep.data import DataConfig
from verydeep.studies import (
    Budget,
    Group,
    Study,
    StudyProgress,
    TrainingRecord,
    open_study,
    run_study,
    start_study,
    work,
)
from verydeep.studies._claim import claim_training, release_training, report_epochs
from verydeep.studies._progress import StudyLines
from verydeep.studies.worker import _worker
from verydeep.training import EpochMetrics, ModelConfig, OptimConfig, TrainConfig

CONFIG = TrainConfig(
    DataConfig("digits"),
    ModelConfig("highway-mlp", depth=2, width=4),
    OptimConfig("sgd", lr=0.1),
    epochs=1,
    batch_size=200,
    threads=1,
)


def opened(folder: Path, *groups: Group) -> Study:
    study = start_study(folder, groups or [Group("first", CONFIG)])
    study.set_open(True)
    return study


def two_more_phases(study: Study) -> Callable[[TrainingRecord], None]:
    """Adds `second` once everything before has ended, then `third`, then closes the study."""

    def add(_: TrainingRecord) -> None:
        names = [group.name for group in study.groups]
        if study.unfinished() or not study.is_open:
            return
        following = {"first": "a longer name for the second", "a longer name for the second": "third"}.get(names[-1])
        if following is None:
            study.set_open(False)
        else:
            study.set_group(Group(following, CONFIG, seeds=(0, 1)))

    return add


def instead_of_waiting(monkeypatch: pytest.MonkeyPatch, *actions: Callable[[], None]) -> list[float]:
    """Do something else each time a worker would wait; return how long it would have waited."""
    waited, left = list[float](), iter(actions)

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        next(left)()

    monkeypatch.setattr(_worker, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
    return waited


def nothing() -> None:
    """Do nothing."""


def test_a_study_is_closed_unless_it_is_opened(tmp_path: Path) -> None:
    study = start_study(tmp_path / "study", [Group("first", CONFIG)])
    assert not study.is_open
    study.set_open(True)
    assert open_study(tmp_path / "study").is_open
    study.set_open(False)
    assert not open_study(tmp_path / "study").is_open


def test_a_worker_waits_for_groups_until_the_study_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, lines = opened(tmp_path / "study"), list[str]()
    other = open_study(tmp_path / "study")
    waited = instead_of_waiting(
        monkeypatch, nothing, lambda: other.set_group(Group("second", CONFIG)), lambda: other.set_open(False)
    )
    assert work(study, report=lines.append)
    assert lines == [
        "first: finished after 1 epoch",
        "everything is trained so far; waiting for more trainings",
        "second: finished after 1 epoch",
        "everything is trained so far; waiting for more trainings",
    ]
    assert len(waited) == 3


def test_a_worker_still_leaves_trainings_begun_elsewhere_to_others_after_it_has_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, lines = opened(tmp_path / "study"), list[str]()
    other = open_study(tmp_path / "study")

    def begin_elsewhere() -> None:
        other.set_group(Group("second", replace(CONFIG, epochs=2)))
        claim = claim_training(other, "elsewhere")
        assert claim is not None
        report_epochs(other, claim, EpochMetrics(1, 0.1, 2.0, 0.1, 0.0))
        release_training(other, claim)
        other.set_open(False)

    waited = instead_of_waiting(monkeypatch, *[nothing] * 9, begin_elsewhere, *[nothing] * 3)
    assert work(study, report=lines.append)
    assert lines[-1] == "second: finished after 2 epochs"
    assert len(waited) == 13  # three times after it was begun elsewhere, however long it had waited before


def test_the_worker_command_says_once_that_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = opened(tmp_path / "study")
    instead_of_waiting(monkeypatch, nothing, nothing, lambda: study.set_open(False))
    assert main(["worker", str(tmp_path / "study")]) == 0
    printed = capsys.readouterr().out
    assert printed.count("waiting for more trainings") == 1
    assert printed.endswith("the study is complete\n")


def test_groups_added_by_on_end_are_trained_until_the_study_is_closed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, ended = opened(tmp_path / "study"), list[str]()
    add = two_more_phases(study)

    def on_end(record: TrainingRecord) -> None:
        ended.append(record.name)
        add(record)

    assert run_study(study, jobs=1, on_end=on_end, progress=StudyLines()) == "complete"
    second = ["a longer name for the second/seed-0", "a longer name for the second/seed-1"]
    assert ended == ["first", *second, "third/seed-0", "third/seed-1"]
    assert [record.attempts for record in study.records()] == [1] * 5
    assert len(list((tmp_path / "study" / "workers").glob("*.log"))) == 1  # one process trained all phases
    assert "5/5 done" in capsys.readouterr().out


def test_a_program_that_was_killed_between_two_phases_continues(tmp_path: Path) -> None:
    study = opened(tmp_path / "study")
    study.set_open(False)
    assert work(study)
    study.set_open(True)  # as if it had been killed before it could add the next group
    workers: list[bool] = []
    add = two_more_phases(study)

    def on_end(record: TrainingRecord) -> None:
        workers.append(
            (tmp_path / "study" / "workers").exists() and any((tmp_path / "study" / "workers").glob("*.log"))
        )
        add(record)

    assert run_study(study, jobs=1, on_end=on_end) == "complete"
    assert workers[0] is False
    assert [group.name for group in study.groups] == ["first", "a longer name for the second", "third"]
    assert {record.status for record in study.records()} == {"finished"}


def test_a_program_that_was_killed_before_it_closed_the_study_only_closes_it(tmp_path: Path) -> None:
    study = opened(tmp_path / "study")
    study.set_open(False)
    assert work(study)
    study.set_open(True)
    assert run_study(study, jobs=1, on_end=lambda _: study.set_open(False)) == "complete"
    assert not list((tmp_path / "study" / "workers").glob("*.log"))


def test_an_open_study_starts_all_workers_and_stops_when_its_budget_is_used_up(tmp_path: Path) -> None:
    class Jobs(StudyProgress):
        def start(self, study: Study, jobs: int, records: list[TrainingRecord]) -> None:
            self.jobs = jobs

    study, progress = opened(tmp_path / "study"), Jobs()
    assert run_study(study, jobs=2, budget=Budget(epochs=1), progress=progress) == "the budget is used up"
    assert progress.jobs == 2
    assert [record.status for record in study.records()] == ["finished"]
