"""What is left to train in a study, and up to which epoch: the rules of its groups, applied to what has been reported.

A training may have several attempts; in Optuna, each of them is a trial. An attempt that was abandoned because its
worker died or was stopped is marked as failed there. An attempt that ended, or paused at the end of a stage, has a
result. If two workers add an attempt at the same instant, the earlier one is trained.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from optuna.trial import FrozenTrial, TrialState

from verydeep.studies._group import Group
from verydeep.studies._halving import Stages, stage_members
from verydeep.training import EpochMetrics

EPOCHS = "epochs:"  # the prefix of attributes that hold several epochs, followed by the number of the first
State = Literal["ready", "running", "blocked", "done"]
_TRAINED = ("finished", "stopped early")
_HAS_NO_VALUE = ("diverged", "failed")


@dataclass(frozen=True)
class Attempts:
    """The attempts at one training.

    Attributes:
        trials: The attempts, the first one first.
        maximise: Whether higher values are better.
        retried: The number of the last attempt whose failure does not count any more, nor the deaths before it.
    """

    trials: Sequence[FrozenTrial]
    maximise: bool
    retried: int = -1

    @property
    def open(self) -> FrozenTrial | None:
        """The attempt that is being trained or waits for a worker; of several, the earliest."""
        return next((trial for trial in self.trials if not trial.state.is_finished()), None)

    @property
    def ended(self) -> FrozenTrial | None:
        """The last attempt that has a result."""
        states = (TrialState.COMPLETE, TrialState.PRUNED)
        last = next((trial for trial in reversed(self.trials) if trial.state in states), None)
        if last is None or (self.retried >= last.number and _read_result(last)["status"] == "failed"):
            return None
        return last

    @property
    def result(self) -> dict[str, Any] | None:
        """How the last attempt that has a result ended: its status, its epochs, and for failures the reason."""
        return None if self.ended is None else _read_result(self.ended)

    @property
    def status(self) -> str | None:
        """The status of the result; None without one."""
        return None if self.result is None else str(self.result["status"])

    @property
    def epochs(self) -> int:
        """The number of epochs that any attempt has reported."""
        return max(map(epochs_reported, self.trials), default=0)

    def has_reached(self, epoch: int) -> bool:
        """Whether a result says that it was trained up to an epoch or ended before."""
        result = self.result
        if result is None:
            return False
        if result["status"] == "stopped early":
            return int(result.get("of", epoch)) >= epoch
        return result["status"] not in ("paused", "finished") or result["epochs"] >= epoch

    def best_until(self, epoch: int) -> float | None:
        """Its best value up to an epoch, with the sign such that lower is better."""
        if self.status in _HAS_NO_VALUE:
            return None
        sign = -1 if self.maximise else 1
        values = [value for trial in self.trials for at, value in reported_values(trial).items() if at <= epoch]
        return min((sign * value for value in values if math.isfinite(value)), default=None)

    @property
    def deaths(self) -> int:
        """How many workers have died while training it since an attempt last got further than those before it."""
        count, reached, taught = 0, 0.0, 0.0
        for trial in self.trials:
            got = max(epochs_reported(trial), float(trial.user_attrs.get("from", 0)))
            teacher = float(trial.user_attrs.get("teacher_from", 0))
            if got > reached or teacher > taught:
                # A long training may be killed often through no fault of its settings.
                count, reached, taught = 0, max(got, reached), max(teacher, taught)
            died = trial.state == TrialState.FAIL and not trial.user_attrs.get("left")
            count += died and trial.number > self.retried
        return count

    @property
    def problem(self) -> str:
        """Why the last attempt was given up, if a worker said so."""
        return str(self.trials[-1].user_attrs.get("problem", "")) if self.trials else ""

    def value_at(self, epoch: int) -> float | None:
        """The value after an epoch, which is the same in all attempts that got so far."""
        return next((values[epoch] for values in map(reported_values, self.trials) if epoch in values), None)


@dataclass(frozen=True)
class StudyTask:
    """One training of a study, and what is to be done about it.

    Attributes:
        name: Its name.
        group: Its group.
        number: Its seed, or its number in a search.
        goal: The epoch up to which it is to be trained.
        attempts: The attempts so far.
        state: `ready` to be claimed, `running`, `blocked` by a training that must finish first, or `done`.
        reason: Why it is `done` without having been trained.
    """

    name: str
    group: Group
    number: int
    goal: int
    attempts: Attempts
    state: State
    reason: str = ""


def make_tasks(groups: Sequence[Group], attempts: Mapping[str, Attempts], maximise: bool) -> list[StudyTask]:
    """All trainings of a study, in the order of its groups."""
    none = Attempts((), maximise)
    tasks: dict[str, StudyTask] = {}
    for group in groups:
        known = {number: attempts.get(group.training_name(number), none) for number in group.numbers}
        goals = _goals(group, known)
        for number, tried in known.items():
            name, goal = group.training_name(number), goals[number]
            running = tried.open is not None and tried.open.state == TrialState.RUNNING
            state: State = "running" if running else "done" if tried.has_reached(goal) else "ready"
            tasks[name] = StudyTask(name, group, number, goal, tried, state)
    return [_after_teacher(task, tasks) for task in tasks.values()]


def _goals(group: Group, known: Mapping[int, Attempts]) -> dict[int, int]:
    """The epoch up to which each training of a group is to be trained at present."""
    goals = dict.fromkeys(known, group.last_epoch)
    if isinstance(group.halving, Stages):
        for stage, epoch in enumerate(group.halving.epochs):
            for number in stage_members(group.halving, stage, known) or ():
                goals[number] = min(epoch, group.last_epoch)
    return goals


def _after_teacher(task: StudyTask, tasks: Mapping[str, StudyTask], students: tuple[str, ...] = ()) -> StudyTask:
    """Block a student until its teacher has finished; if it never will, there is nothing to do."""
    if task.group.after is None or task.state != "ready":
        return task
    if task.name in students:
        return _with(task, "done", "waits for itself")
    teacher = tasks.get(task.group.after)
    teacher = teacher and _after_teacher(teacher, tasks, (*students, task.name))  # it may be a student itself
    if teacher is not None and teacher.attempts.status in _TRAINED:
        return task
    if teacher is not None and teacher.state != "done":
        return _with(task, "blocked", f"waits for {teacher.name}")
    why = "is not part of the study" if teacher is None else teacher.attempts.status or teacher.reason
    return _with(task, "done", f"needs {task.group.after}, which {'is ' if why == 'paused' else ''}{why}")


def _with(task: StudyTask, state: State, reason: str) -> StudyTask:
    return StudyTask(task.name, task.group, task.number, task.goal, task.attempts, state, reason)


def epochs_reported(trial: FrozenTrial) -> int:
    """The number of epochs that an attempt has reported."""
    return max(reported_values(trial), default=0)


def reported_values(trial: FrozenTrial) -> Mapping[int, float]:
    """The value of every epoch that an attempt has reported; `Study.add_result` stores them with the result."""
    together = reported_together(trial)
    if together:
        return {epoch: value for each in together for epoch, value in each.values.items()} | trial.intermediate_values
    if trial.intermediate_values or "result" not in trial.user_attrs:
        return trial.intermediate_values
    return dict(enumerate(_read_result(trial).get("values", ()), 1))


@dataclass(frozen=True)
class ReportedEpochs:
    """Consecutive epochs that a worker has reported together.

    Attributes:
        values: The value of each epoch.
        curve: The metrics of each epoch.
    """

    values: Mapping[int, float]
    curve: Mapping[int, EpochMetrics]


def reported_together(trial: FrozenTrial) -> list[ReportedEpochs]:
    """What an attempt has reported several epochs at a time; single epochs are attributes of their own."""
    return [_read_epochs(key, text) for key, text in trial.user_attrs.items() if key.startswith(EPOCHS)]


@lru_cache(1 << 14)
def _read_epochs(key: str, text: str) -> ReportedEpochs:
    first, content = int(key.removeprefix(EPOCHS)), json.loads(text)
    curve = (EpochMetrics.from_dict(line) for line in content["curve"])
    return ReportedEpochs(dict(enumerate(content["values"], first)), dict(enumerate(curve, first)))


def _read_result(trial: FrozenTrial) -> dict[str, Any]:
    return _parse(trial.user_attrs.get("result") or '{"status": "finished", "epochs": 0}')


@lru_cache(4096)
def _parse(text: str) -> dict[str, Any]:
    return dict(json.loads(text))
