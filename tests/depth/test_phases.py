"""What follows from the results so far."""

from dataclasses import replace
from typing import Any

from verydeep.data import DataConfig
from verydeep.depth._cost import count_epochs
from verydeep.depth._phases import Phases, first_groups
from verydeep.depth._plan import make_plan
from verydeep.depth._problem import Problem
from verydeep.studies import Group, TrainingRecord


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


def test_a_search_that_ends_between_two_looks_still_gets_its_final_networks() -> None:
    """Otherwise the study is closed for a moment, and workers leave it."""
    problem = Problem(DataConfig("digits"), None, None)
    plan = make_plan(problem, count_epochs(), 1e4, 2)
    assert plan is not None
    study: Any = Trained(first_groups(problem, plan))
    phases = Phases(study, problem, plan, count_epochs(), 1e4, lambda finalists: None)
    last = study.groups[-1].name.split("/")[1]
    open_after = []
    while last not in {group.name.split("/")[0] for group in study.groups}:
        open_after.append(phases.advance())
    assert len(open_after) == 2
    assert all(open_after)
