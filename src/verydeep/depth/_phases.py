"""Which trainings follow from the results so far: settings are searched, then seeds, then depths around the answer.

Everything follows from the plan and from what the study has recorded, so that a study that was killed at any time goes
on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from verydeep.depth._plan import DepthPlan, candidate_cost, first_stage, plan_cost, revise_plan, search_cost
from verydeep.depth._problem import Candidate, Problem, candidates_at
from verydeep.depth._stored_plan import ANALYSIS, Planned, store_plan
from verydeep.studies import Group, Sampling, Settings, Stages, Study, TrainingRecord, with_settings

SEARCH = "settings"
_SLOWEST = 3.0  # times: no more of the time is set aside for what is measured at the end


@dataclass(frozen=True)
class Finalist:
    """A candidate with settings that its search found good, trained with all seeds.

    Attributes:
        candidate: The kind of network and its depth.
        group: The name of its group in the study.
        settings: The settings that were searched; empty for the default ones.
    """

    candidate: Candidate
    group: str
    settings: Settings


def seeds_of(plan: DepthPlan) -> tuple[int, ...]:
    """The seeds of the networks; each holds out another part of the data."""
    first = 1000 * plan.seed  # a multiple of the number of parts
    return tuple(range(first, first + plan.seeds))


def first_groups(problem: Problem, plan: DepthPlan) -> list[Group]:
    """The searches of the depths that are trained first, the deepest networks first: they take longest."""
    depths = sorted(plan.depths, reverse=True)
    return [group for depth in depths for each in candidates_at(depth) for group in search_groups(problem, plan, each)]


def search_groups(problem: Problem, plan: DepthPlan, candidate: Candidate) -> list[Group]:
    """The trainings that find settings for a candidate: some drawn at random, and the default ones."""
    name = f"{SEARCH}/{candidate.name}"
    config = problem.config(candidate, plan.search_epochs, plan.batch_size)
    config = with_settings(config, {"seed": seeds_of(plan)[0], "patience": 0})
    stages = Stages((first_stage(plan), plan.search_epochs), (plan.trials, plan.kept))
    if first_stage(plan) == plan.search_epochs:
        stages = Stages((plan.search_epochs,), (plan.trials,))
    sampling = Sampling(problem.space(candidate, config), plan.trials, seed=plan.seed)
    return [Group(f"{name}/default", config), Group(name, config, sampling=sampling, halving=stages)]


class Phases:
    """Adds to a study what follows from its results.

    Args:
        study: The study.
        problem: The data and the family of networks.
        planned: What is to be trained, and what it may cost.
        elapsed: Returns the seconds that all this has taken so far.
        choose: Chooses among the finalists that have been trained: the depth that is enough.

    Attributes:
        plan: What is trained; shortened after the searches if they took too long.
        now: What is going on, in words.
    """

    def __init__(
        self,
        study: Study,
        problem: Problem,
        planned: Planned,
        elapsed: Callable[[], float],
        choose: Callable[[Sequence[Finalist]], int | None],
    ) -> None:
        self.study, self.problem, self.plan = study, problem, planned.plan
        self.cost, self.budget, self.elapsed, self.choose = planned.cost, planned.budget, elapsed, choose
        self.now = ""

    def advance(self) -> bool:
        """Add the trainings that follow from the results so far.

        Returns:
            Whether there is anything left to train or to wait for.
        """
        records, added = self._records(), False
        if not self._is_revised(records):
            if not all(_has_ended(self._search_records(each, records)) for each in self.candidates()):
                self.now = self._describe(records)
                return True
            self._revise()
        for candidate in self.candidates():
            for finalist in self._choose_settings(candidate, records):
                if finalist.group not in records:
                    self.study.set_group(self._final_group(finalist))
                    added = True
        # By the same records: a search that has ended since then still has finalists to come.
        if added or not all(_has_ended(each) for each in records.values()):
            self.now = self._describe(records)
            return True
        depth = self._next_depth(records)
        if depth is None:
            return False
        for candidate in candidates_at(depth):
            for group in search_groups(self.problem, self.plan, candidate):
                self.study.set_group(group)
        self.now = f"checking depth {depth}, next to the answer so far"
        return True

    def candidates(self) -> list[Candidate]:
        """Everything that is trained, ascending by depth."""
        names = {group.name.split("/")[1] for group in self.study.groups if group.name.startswith(SEARCH)}
        depths = {int(name.rpartition("-")[2]) for name in names} | set(self.plan.depths)
        return [candidate for depth in sorted(depths - set(self.plan.left_out)) for candidate in candidates_at(depth)]

    def finalists(self) -> list[Finalist]:
        """All networks that have been trained with all seeds."""
        records = self._records()
        found = [each for candidate in self.candidates() for each in self._choose_settings(candidate, records)]
        return [each for each in found if each.group in records]

    def share_trained(self) -> float:
        """The fraction of the expected cost of the plan that has been spent."""
        spent = sum(self._spent(record) for record in self.study.records())
        expected = plan_cost(self.cost, self.plan)
        return spent / max(expected, spent * 1.02)

    @property
    def slowness(self) -> float:
        """How many times as long as expected the searches took; 1 if epochs are counted."""
        if self.cost.unit == "epochs":
            return 1.0
        records = self._records()
        spent = expected = 0.0
        for candidate in self.candidates():
            found = self._search_records(candidate, records)
            if _has_ended(found):
                spent += sum(map(self._spent, found))
                expected += search_cost(self.cost, self.plan, candidate)
        return spent / expected if spent and expected else 1.0

    def _is_revised(self, records: dict[str, list[TrainingRecord]]) -> bool:
        """Whether trainings with several seeds have begun, and with them everything is decided but refinements."""
        return any(not name.startswith(SEARCH) for name in records)

    def _revise(self) -> None:
        """Shorten the rest of the plan if the time is short, and store it before anything is trained by it."""
        if self.plan.minutes is None or self.plan.revision:
            return
        revised = revise_plan(self.cost, self.plan, self.slowness, self._seconds_left())
        if revised != self.plan:
            store_plan(self.study.folder, self.problem, revised)
            self.plan = revised

    def _seconds_left(self) -> float:
        """The time that is left for training, without that for what is measured at the end."""
        assert self.plan.minutes is not None
        analysis = ANALYSIS * min(max(1.0, self.slowness), _SLOWEST)
        return (1 - analysis) * 60 * self.plan.minutes - self.elapsed()

    def _records(self) -> dict[str, list[TrainingRecord]]:
        found: dict[str, list[TrainingRecord]] = {group.name: [] for group in self.study.groups}
        for record in self.study.records():
            found[record.group].append(record)
        return found

    def _search_records(self, candidate: Candidate, records: dict[str, list[TrainingRecord]]) -> list[TrainingRecord]:
        name = f"{SEARCH}/{candidate.name}"
        return records.get(f"{name}/default", []) + records.get(name, [])

    def _choose_settings(self, candidate: Candidate, records: dict[str, list[TrainingRecord]]) -> list[Finalist]:
        """The best settings of a candidate by validation loss; the default ones if no training has a result."""
        found = self._search_records(candidate, records)
        if not _has_ended(found):
            return []
        scored = [record for record in found if record.value is not None] or found[:1]
        ranked = sorted(scored, key=lambda record: (record.value or 0.0, record.number))
        return [
            Finalist(candidate, f"{candidate.name}/{_label(record)}", record.settings)
            for record in ranked[: self.plan.finalists]
        ]

    def _final_group(self, finalist: Finalist) -> Group:
        config = self.problem.config(finalist.candidate, self.plan.epochs, self.plan.batch_size)
        config = with_settings(config, finalist.settings) if finalist.settings else config
        return Group(finalist.group, config, seeds=seeds_of(self.plan))

    def _next_depth(self, records: dict[str, list[TrainingRecord]]) -> int | None:
        """A depth between the answer so far and the next smaller one, if it can be afforded."""
        depths = sorted({candidate.depth for candidate in self.candidates()})
        if len(set(depths) - set(self.plan.depths)) >= self.plan.refinements:
            return None
        answer = self.choose(self.finalists())
        if answer is None or answer == 0:
            return None
        below = max(depth for depth in depths if depth < answer)
        between = (below + answer) // 2
        if between == below or between in self.plan.left_out:
            return None
        needed = sum(candidate_cost(self.cost, self.plan, each) for each in candidates_at(between))
        if self.plan.minutes is not None:
            in_time = self.slowness * needed / max(1, self.plan.jobs) <= self._seconds_left()
            return between if in_time else None
        spent = sum(self._spent(record) for group in records.values() for record in group)
        return between if spent + needed <= self.budget else None

    def _spent(self, record: TrainingRecord) -> float:
        return record.epochs if self.cost.unit == "epochs" else record.seconds + self.cost.per_training

    def _describe(self, records: dict[str, list[TrainingRecord]]) -> str:
        """What is going on, and why."""
        searching = {
            name.split("/")[1] for name, each in records.items() if name.startswith(SEARCH) and not _has_ended(each)
        }
        if searching:
            return "finding settings for each depth"
        return "training every depth with several seeds, each holding out another part of the data"


def _label(record: TrainingRecord) -> str:
    return f"settings-{record.number}" if record.settings else "default"


def _has_ended(records: list[TrainingRecord]) -> bool:
    """Whether all trainings of a group have a result; those that halving paused have."""
    return bool(records) and all(record.has_ended for record in records)
