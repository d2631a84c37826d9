"""What is trained next: by the plan, by the results so far, and by the clock."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from verydeep.data import DataConfig
from verydeep.depth._cost import Cost, count_epochs
from verydeep.depth._phases import Phases, first_groups
from verydeep.depth._plan import DepthPlan, make_plan
from verydeep.depth._problem import Problem
from verydeep.depth._progress import DepthProgress
from verydeep.depth._stopwatch import Stopwatch
from verydeep.depth._stored_plan import Asked, Planned, check_plan, store_plan, stored_plan
from verydeep.studies import Group, TrainingRecord

PLAN = DepthPlan(
    most=4,
    depths=(0, 1, 2, 4),
    trials=3,
    kept=1,
    search_epochs=3,
    seeds=5,
    folds=5,
    epochs=40,
    batch_size=32,
    widths=(24,),
    minutes=10.0,
    refinements=3,
)


@pytest.fixture(scope="module")
def digits() -> Problem:
    return Problem(DataConfig("digits"), None, None)


@dataclass
class FakeStudy:
    """A study whose trainings end at once, each after the same time.

    Attributes:
        folder: The folder.
        groups: The groups.
        seconds: The time of every training.
        ended: Whether they have ended.
    """

    folder: Path
    groups: list[Group]
    seconds: float = 0.2
    ended: set[str] = field(default_factory=set)

    def set_group(self, group: Group) -> None:
        self.groups.append(group)

    def records(self) -> list[TrainingRecord]:
        return [
            TrainingRecord(
                number,
                "finished" if group.name in self.ended else "waiting",
                0.5,
                epochs=3,
                seconds=self.seconds,
                settings={},
                group=group.name,
            )
            for group in self.groups
            for number in group.numbers
        ]

    def end_all(self) -> None:
        self.ended |= {group.name for group in self.groups}

    def final(self) -> list[Group]:
        return [group for group in self.groups if not group.name.startswith("settings/")]


def phases(study: FakeStudy, problem: Problem, plan: DepthPlan, elapsed: float, cost: Cost | None = None) -> Phases:
    cost = cost or Cost("seconds", lambda _candidate, _width: 0.1, 0.0)
    fake: Any = study
    return Phases(fake, problem, Planned(plan, cost, 1e9), lambda: elapsed, lambda _finalists: 4)


def start(folder: Path, problem: Problem, plan: DepthPlan = PLAN) -> FakeStudy:
    store_plan(folder, problem, plan)
    return FakeStudy(folder, first_groups(problem, plan))


def asked(plan: DepthPlan) -> Asked:
    return Asked(plan.most, plan.minutes, plan.total_epochs, plan.seed, plan.jobs)


def test_nothing_is_shortened_in_time_and_nothing_begins_before_all_searches_have_ended(
    digits: Problem, tmp_path: Path
) -> None:
    study = start(tmp_path, digits)
    study.ended = {group.name for group in study.groups if group.name.startswith("settings/highway-0")}
    assert phases(study, digits, PLAN, 5.0).advance()
    assert study.final() == []
    study.end_all()
    assert phases(study, digits, PLAN, 30.0).advance()
    assert {(group.config.epochs, len(group.seeds or ())) for group in study.final()} == {(40, 5)}
    assert check_plan(tmp_path, digits, asked(PLAN)) == PLAN


def test_a_late_study_is_shortened_once_and_goes_on_with_the_same_decision(digits: Problem, tmp_path: Path) -> None:
    study = start(tmp_path, digits)
    study.end_all()
    assert phases(study, digits, PLAN, 500.0).advance()
    revised = check_plan(tmp_path, digits, asked(PLAN))
    assert revised.revision
    assert revised.epochs < PLAN.epochs
    assert {(group.config.epochs, group.seeds) for group in study.final()} == {(revised.epochs, (0, 1, 2))}
    before = list(study.groups)
    for plan, elapsed in ((revised, 10.0), (revised, 5000.0)):  # killed and continued, whatever the clock says
        assert phases(study, digits, plan, elapsed).advance()
        assert study.groups == before
        assert check_plan(tmp_path, digits, asked(PLAN)) == revised


def test_a_plan_that_was_shortened_before_a_kill_is_not_shortened_again(digits: Problem, tmp_path: Path) -> None:
    revised = replace(PLAN, epochs=12, seeds=3, revision="It took longer than planned.")
    study = start(tmp_path, digits, revised)
    study.end_all()
    assert phases(study, digits, revised, 5000.0).advance()
    assert {(group.config.epochs, group.seeds) for group in study.final()} == {(12, (0, 1, 2))}


def test_depths_are_refined_only_while_there_is_time(digits: Problem, tmp_path: Path) -> None:
    for elapsed, expected in ((30.0, True), (590.0, False)):
        study = start(tmp_path, digits)
        study.end_all()
        phases(study, digits, PLAN, 30.0).advance()
        study.end_all()
        assert phases(study, digits, PLAN, elapsed).advance() == expected
        assert any(group.name == "settings/highway-3" for group in study.groups) == expected


def test_counted_epochs_do_not_depend_on_the_clock(digits: Problem, tmp_path: Path) -> None:
    counted = replace(PLAN, minutes=None, total_epochs=10_000)
    for elapsed in (1.0, 1e6):
        study = start(tmp_path, digits, counted)
        study.seconds = elapsed
        study.end_all()
        assert phases(study, digits, counted, elapsed, count_epochs()).advance()
        assert {(group.config.epochs, len(group.seeds or ())) for group in study.final()} == {(40, 5)}
        study.end_all()
        assert phases(study, digits, counted, elapsed, count_epochs()).advance()
        assert any(group.name == "settings/highway-3" for group in study.groups)


def test_time_adds_up_over_calls(tmp_path: Path) -> None:
    times = iter((100.0, 130.0, 131.0, 131.0))
    first = Stopwatch(tmp_path, 90.0, lambda: next(times))
    assert first.seconds == 10.0
    first.save()
    first.save()  # a moment later: not worth a file
    second = Stopwatch(tmp_path, 500.0, lambda: 507.0)
    assert second.seconds == 47.0


def test_a_plan_on_disk_keeps_what_was_shortened(digits: Problem, tmp_path: Path) -> None:
    asked_for = Asked(4, None, 5000, 0, 1)
    plan = stored_plan(tmp_path, digits, asked_for, DepthProgress()).plan
    (tmp_path / "study.json").write_text("{}")
    store_plan(tmp_path, digits, replace(plan, left_out=(2,), revision="Shorter."))
    assert stored_plan(tmp_path, digits, asked_for, DepthProgress()).plan.left_out == (2,)


class Trained:
    """A study whose searches have ended, but for a training that ends as soon as someone has looked."""

    def __init__(self, groups: list[Group]) -> None:
        self.groups, self.looks = groups, 0

    def set_group(self, group: Group) -> None:
        self.groups.append(group)

    def records(self) -> list[TrainingRecord]:
        self.looks += 1
        ended = [TrainingRecord(0, "finished", 0.5, 1, group=group.name, name=group.name) for group in self.groups]
        if self.looks == 1:
            ended[-1] = replace(ended[-1], status="training")
        return ended


def test_a_search_that_ends_between_two_looks_still_gets_its_final_networks(digits: Problem) -> None:
    """Otherwise the study is closed for a moment, and workers leave it."""
    problem = digits
    plan = make_plan(problem, count_epochs(), 1e4, 2)
    assert plan is not None
    study: Any = Trained(first_groups(problem, plan))
    phases = Phases(study, problem, Planned(plan, count_epochs(), 1e4), lambda: 0.0, lambda _finalists: None)
    last = study.groups[-1].name.split("/")[1]
    open_after = []
    while last not in {group.name.split("/")[0] for group in study.groups}:
        open_after.append(phases.advance())
    assert len(open_after) == 2
    assert all(open_after)
