"""A study: groups of trainings and the attempts at them, in a storage."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna
from optuna.trial import TrialState, create_trial

from verydeep.errors import UserError
from verydeep.studies._artifacts import Artifacts, has_files
from verydeep.studies._group import Group, group_from_json, group_of_former_study, group_to_json
from verydeep.studies._records import TrainingRecord, make_record
from verydeep.studies._schedule import Attempts, StudyTask, make_tasks
from verydeep.studies.storage._store import Store, quiet_optuna
from verydeep.words import higher_is_better, plural

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from verydeep.training import EpochMetrics

# Prefixes of a study's attributes. Each group and each training has its own: commands that change different ones at
# the same time do not undo each other's changes.
GROUP, RETRIED, FORGOTTEN = "group/", "retried/", "forgotten/"
_OPEN = "open"


class Study:
    """Many trainings in a folder and a storage. `start_study` creates one, and `open_study` opens it.

    Args:
        name: Its name in the storage.
        folder: Where the runs of this machine are.
        store: The storage.
        artifacts: Where workers on several machines exchange weights, if anywhere.

    Attributes:
        name: Its name in the storage.
        folder: Where the runs of this machine are.
        store: The storage.
        artifacts: Where workers on several machines exchange weights, or None.
        metric: The metric by which trainings are compared.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.studies import Group, start_study
        >>> from verydeep.training import TrainConfig
        >>> group = Group("plain", TrainConfig(DataConfig("digits")), seeds=(0, 1))
        >>> study = start_study("runs/seeds", [group])
        >>> study.unfinished()
        2
    """

    def __init__(self, name: str, folder: Path, store: Store, artifacts: Artifacts | None = None) -> None:
        self.name, self.folder, self.store, self.artifacts = name, folder, store, artifacts
        with quiet_optuna():
            self.optuna = optuna.load_study(study_name=name, storage=store.storage)
        self._parsed: dict[str, tuple[str, tuple[int, Group]]] = {}
        self.metric = self._read_metric()

    def __repr__(self) -> str:
        groups = self.groups
        trainings = plural(sum(len(group.numbers) for group in groups), "training")
        return f"Study({self.name!r}, {trainings} in {plural(len(groups), 'group')}, by {self.metric})"

    def _read_metric(self) -> str:
        return str(self.optuna.user_attrs["metric"])

    @property
    def maximise(self) -> bool:
        """Whether higher values of the metric are better."""
        return higher_is_better(self.metric)

    @property
    def worst(self) -> float:
        """The value of a training that diverged."""
        return -math.inf if self.maximise else math.inf

    @property
    def groups(self) -> list[Group]:
        """The groups, in the order in which they were added."""
        found = []
        for key, text in self.optuna.user_attrs.items():
            if key.startswith(GROUP):
                before = self._parsed.get(key)
                if before is None or before[0] != text:
                    name = key.removeprefix(GROUP)
                    before = text, group_from_json(name, text, f"study '{self.name}', group '{name}'")
                    self._parsed[key] = before
                found.append(before[1])
        return [group for _, group in sorted(found, key=lambda each: each[0])]

    @cached_property
    def breadth_first(self) -> bool:
        """Whether the first trainings of all groups come before the second ones."""
        return bool(self.optuna.user_attrs.get("breadth_first", False))

    @cached_property
    def shares_all(self) -> bool:
        """Whether every run goes to the artifact store, and not only the best of each group and teachers."""
        return bool(self.optuna.user_attrs.get("share_all", False))

    @property
    def is_open(self) -> bool:
        """Whether groups may still be added: workers that have nothing left to train wait for them."""
        return bool(self.optuna.user_attrs.get(_OPEN, False))

    def set_open(self, is_open: bool) -> None:
        """Keep the workers of a study waiting for groups that are added later, or let them leave when all is trained.

        A program whose later trainings depend on the results of earlier ones opens its study, adds groups with
        `set_group` in the `on_end` of `run_study`, and closes the study after the last group.

        Args:
            is_open: Whether groups may still be added; a new study is closed.

        Example:
            >>> from verydeep.data import DataConfig
            >>> from verydeep.studies import Group, run_study, start_study
            >>> from verydeep.training import ModelConfig, OptimConfig, TrainConfig, complete_config
            >>> data, model = DataConfig("digits"), ModelConfig(depth=2, width=8)
            >>> def group(name, lr):
            ...     return Group(name, complete_config(TrainConfig(data, model, OptimConfig(lr=lr), epochs=1)))
            >>> study = start_study("runs/phases", [group("low", 0.01), group("high", 0.1)])
            >>> study.set_open(True)
            >>> def next_phase(record):  # also called for results of earlier calls, so a killed program continues
            ...     done = {each.name: each.value for each in study.records() if each.has_ended}
            ...     if {"low", "high"} <= done.keys():
            ...         study.set_group(group("last", 0.03 if done["low"] < done["high"] else 0.3))
            ...         study.set_open(False)
            >>> run_study(study, jobs=1, on_end=next_phase)
            'complete'
            >>> [record.status for record in study.records()]
            ['finished', 'finished', 'finished']
        """
        if is_open != self.is_open:
            self.optuna.set_user_attr(_OPEN, is_open)

    def set_group(self, group: Group) -> None:
        """Add a group, or replace the one of the same name.

        Args:
            group: The group. Unlike `start_study`, this does not choose settings that its configuration leaves out; see
                `verydeep.training.complete_config`.
        """
        stored = {key: json.loads(text) for key, text in self.optuna.user_attrs.items() if key.startswith(GROUP)}
        known = stored.get(GROUP + group.name)
        order = known["order"] if known else max((each["order"] for each in stored.values()), default=-1) + 1
        text = group_to_json(group, order)
        if known is None or json.loads(text) != known:
            self.optuna.set_user_attr(GROUP + group.name, text)

    def attempts(self) -> dict[str, Attempts]:
        """The attempts at every training that has any, by its name."""
        found: dict[str, list[FrozenTrial]] = {}
        attributes, trials = self.optuna.user_attrs, self.optuna.get_trials(deepcopy=False)
        with self._reading():
            retried, forgotten = _last_attempts(attributes, RETRIED), _last_attempts(attributes, FORGOTTEN)
            for trial in trials:
                name = training_of(trial)
                if name is not None and trial.number > forgotten.get(name, -1):
                    found.setdefault(name, []).append(trial)
        return {name: Attempts(trials, self.maximise, retried.get(name, -1)) for name, trials in found.items()}

    def tasks(self, only: Collection[str] | None = None) -> list[StudyTask]:
        """What is to be done, in the order of the groups.

        Args:
            only: The names of groups or of single trainings; their teachers are included. By default, all.
        """
        groups, attempts = self.groups, self.attempts()
        with self._reading():
            tasks = make_tasks(groups, attempts, self.maximise)
        if only is None:
            return tasks
        teachers = {task.name: task.group.after for task in tasks}
        chosen = set[str]()
        for task in tasks:
            name: str | None = task.name if task.group.name in only or task.name in only else None
            while name is not None and name not in chosen:
                chosen.add(name)
                name = teachers.get(name)
        return [task for task in tasks if task.name in chosen]

    def unfinished(self, only: Collection[str] | None = None) -> int:
        """The number of trainings that are still to be trained."""
        return sum(task.state != "done" for task in self.tasks(only))

    def records(self, only: Collection[str] | None = None) -> list[TrainingRecord]:
        """Every training with its result so far, in the order of the groups.

        Args:
            only: The names of groups or of single trainings; by default, all.
        """
        tasks = self.tasks(only)
        with self._reading():
            return [make_record(task, self.metric, self.maximise) for task in tasks]

    def epochs_trained(self) -> int:
        """The epochs of all trainings together; an epoch that was trained again after a crash counts once."""
        attempts = self.attempts().values()
        with self._reading():
            return sum(each.epochs for each in attempts)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn what the attempts in a damaged storage make impossible into a one-line message."""
        try:
            yield
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise UserError(f"study '{self.name}': an attempt in the storage is damaged ({error!r})") from error

    def run_path(self, training: str) -> Path:
        """The folder of a training's run, on this machine."""
        return self.folder / training

    def fetch_run(self, training: str) -> Path | None:
        """The folder of a finished training's run; None if it is neither on this machine nor in the artifact store."""
        path = self.run_path(training)
        if (path / "summary.json").exists():
            return path
        ended = self.attempts()[training].ended
        if self.artifacts is None or ended is None or not has_files(ended) or path.exists():
            return None
        self.artifacts.download(ended, path)
        return path

    def add_result(self, training: str, status: str, metrics: list[EpochMetrics], of: int | None = None) -> None:
        """Record a training that was done elsewhere, as far as it was trained; it is not trained again.

        Args:
            training: Its name.
            status: `finished`, `stopped early`, `diverged`, or `paused` if it may be trained further.
            metrics: The metrics of its epochs.
            of: The number of epochs that it was to be trained for; one that stopped before is not trained again until
                it is to have more.
        """
        values = [_or_worst(line.get(self.metric), self.worst) for line in metrics]
        result = {"status": status, "epochs": len(metrics), "seconds": metrics[-1].seconds if metrics else 0.0}
        result |= {} if of is None else {"of": of}
        # In a single attribute, because a server takes a while for every row.
        result |= {"values": values, "curve": [line.to_dict() for line in metrics]}
        best = (max if self.maximise else min)(values, default=self.worst)
        state = TrialState.PRUNED if status == "paused" else TrialState.COMPLETE
        attributes = {"training": training, "result": json.dumps(result)}
        value = self.worst if status == "diverged" else best
        self.optuna.add_trial(create_trial(state=state, value=value, user_attrs=attributes))

    def retry_failed(self, only: Collection[str] | None = None) -> None:
        """Let trainings that failed be tried again."""
        failed = {task.name: task.attempts for task in self.tasks(only) if task.attempts.status == "failed"}
        for name, tried in failed.items():
            if tried.ended is not None:
                self.optuna.set_user_attr(RETRIED + name, tried.ended.number)

    def forget(self, trainings: Iterable[str]) -> None:
        """Forget the attempts at some trainings, which then start from the beginning."""
        last = max((trial.number for trial in self.optuna.get_trials(deepcopy=False)), default=-1)
        for name in trainings:
            self.optuna.set_user_attr(FORGOTTEN + name, last)


def _last_attempts(attributes: Mapping[str, Any], prefix: str) -> dict[str, int]:
    """For some trainings, the number of the last attempt that does not count any more."""
    return {key.removeprefix(prefix): int(value) for key, value in attributes.items() if key.startswith(prefix)}


def training_of(trial: FrozenTrial) -> str | None:
    """The name of the training that an attempt belongs to; None for a foreign trial."""
    if "training" in trial.user_attrs:
        return str(trial.user_attrs["training"])
    number = trial.user_attrs.get("setting")  # of a search that an earlier version started
    return None if number is None else f"trials/{number:04}"


def upgrade_study(study: optuna.Study) -> None:
    """Give the study of an earlier version, which knew only searches, its group and its metric."""
    attributes = study.user_attrs
    if "search" in attributes and "metric" not in attributes:
        where = f"study '{study.study_name}'"
        group, metric = group_of_former_study(attributes["search"], int(attributes["trials"]), where)
        study.set_user_attr(GROUP + group.name, group_to_json(group, 0))
        study.set_user_attr("metric", metric)


def _or_worst(value: float | None, worst: float) -> float:
    return worst if value is None or not math.isfinite(value) else value
