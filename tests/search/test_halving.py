"""Successive halving: who goes on, also when trials are begun several times."""

from pathlib import Path

import pytest

from verydeep.search import Halving, SearchStudy, read_search, start_search
from verydeep.studies._claim import (
    Claim,
    _add_attempt,
    claim_training,
    release_training,
    report_epochs,
)
from verydeep.studies._halving import continues, is_rung
from verydeep.studies.storage._dead_workers import fail_attempt
from verydeep.studies.worker._worker import MOST_DEATHS
from verydeep.training import EpochMetrics

from .conftest import Write


@pytest.fixture
def study(write: Write, tmp_path: Path) -> SearchStudy:
    file = write(trials=9, epochs=20, more='metric = "loss"\nhalving = {first = 2, keep = 3}')
    return start_search(tmp_path / "study", read_search(file))


def report_epoch(study: SearchStudy, claim: Claim, epoch: int, loss: float) -> bool:
    return report_epochs(study, claim, EpochMetrics(epoch, loss=loss))


def claimed(study: SearchStudy) -> Claim:
    claim = claim_training(study, "anna")
    assert claim is not None
    return claim


def test_rungs_are_as_many_times_longer_as_are_left_behind() -> None:
    assert [epoch for epoch in range(1, 60) if is_rung(Halving(2, 3), epoch)] == [2, 6, 18, 54]


def test_one_in_so_many_goes_on_and_of_very_few_the_best() -> None:
    assert continues(0.5, [], 3, maximise=False)
    assert not continues(0.5, [0.4], 3, maximise=False)
    losses = [0.1, 0.2, 0.3, 0.4, 0.6]
    assert [continues(value, losses, 3, maximise=False) for value in (0.15, 0.2, 0.25)] == [True, True, False]
    assert [continues(value, losses, 3, maximise=True) for value in (0.5, 0.4, 0.35)] == [True, True, False]


def test_a_trial_is_judged_once_at_a_rung_however_often_it_is_begun(study: SearchStudy) -> None:
    first = claimed(study)
    assert not any(report_epoch(study, first, epoch, 0.5) for epoch in (1, 2, 3))
    release_training(study, first)
    other = _added(study, 1)
    assert not any(report_epoch(study, other, epoch, 0.4) for epoch in (1, 2))  # better than the first, by now
    again = claimed(study)
    assert (again.number, again.reached) == (0, 3)
    assert not any(report_epoch(study, again, epoch, 0.5) for epoch in (1, 2, 3, 4, 5))
    assert not report_epoch(study, again, 6, 0.3)


def test_a_setting_counts_once_however_often_it_was_begun(study: SearchStudy) -> None:
    for _ in range(5):  # five attempts at one good setting are no five good settings
        claim = claimed(study)
        report_epoch(study, claim, 1, 0.1)
        report_epoch(study, claim, 2, 0.1)
        release_training(study, claim)
    for setting, value in ((1, 0.3), (2, 0.4), (3, 0.5), (4, 0.6)):
        report_epoch(study, _added(study, setting), 2, value)
    assert not report_epoch(study, _added(study, 5), 2, 0.2)  # the second of six


def test_deaths_count_from_where_a_trial_last_got_further(study: SearchStudy) -> None:
    for epoch in range(1, MOST_DEATHS + 3):
        claim = claimed(study)
        assert claim.deaths <= 1
        study.store.storage.set_trial_intermediate_value(claim.trial_id, epoch, 0.5)
        fail_attempt(study.store.storage, claim.trial_id)
    for _ in range(MOST_DEATHS - 1):
        fail_attempt(study.store.storage, claimed(study).trial_id)
    assert claimed(study).deaths == MOST_DEATHS
    assert study.records()[0].epochs == MOST_DEATHS + 2


def _added(study: SearchStudy, setting: int) -> Claim:
    task = study.tasks()[setting]
    attempt = _add_attempt(study, task)
    assert attempt is not None
    return Claim(task.name, task.group, setting, task.goal, attempt._trial_id, {})
