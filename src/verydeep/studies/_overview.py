"""How far a study is: its records, and what workers on this machine have reported since they were read."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from verydeep.studies._budget import Budget
from verydeep.studies._time_left import TimeLeft, estimate_time_left
from verydeep.studies._words import format_left, format_value, metric_label
from verydeep.words import plural

if TYPE_CHECKING:
    from verydeep.studies._group import Group
    from verydeep.studies._records import TrainingRecord
    from verydeep.studies._study import Study

_SMOOTHING = 0.7  # the share of earlier batches in the loss that is shown, because that of single batches jumps


@dataclass
class LatestStep:
    """What a worker on this machine has reported about the training it is at.

    Attributes:
        done: The epochs that are done, with a fraction.
        loss: The mean loss of recent batches.
        accuracy: The accuracy on recent batches.
        began: When it was first reported.
        first: The epochs that were done then.
        epochs: The number of its epochs in the study's records.
        since: When that number changed.
    """

    done: float
    loss: float
    accuracy: float
    began: float
    first: float
    epochs: int
    since: float

    def add(self, done: float, loss: float, accuracy: float) -> None:
        """Add a later report."""
        self.done = done
        self.loss = _SMOOTHING * self.loss + (1 - _SMOOTHING) * loss
        self.accuracy = _SMOOTHING * self.accuracy + (1 - _SMOOTHING) * accuracy


class Overview:
    """All trainings of a study at one moment.

    Args:
        study: The study.
        jobs: The number of workers on this machine.
        records: Its trainings.
        budget: When the workers on this machine stop.
        now: Returns the time in seconds.

    Attributes:
        records: The trainings as they were read last.
        steps: What workers on this machine have reported about the trainings they are at.
        stops: Whether someone has pressed Ctrl-C.
        waits: Whether the server that records the study does not answer.
    """

    stops = waits = False

    def __init__(
        self,
        study: Study,
        jobs: int,
        records: list[TrainingRecord],
        budget: Budget = Budget(),  # noqa: B008 - it cannot change
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = _title(study.folder.resolve())
        self.metric, self.maximise = study.metric, study.maximise
        self.jobs, self.budget, self.now, self.began = jobs, budget, now, now()
        self.study = study
        self.groups: dict[str, Group] = {group.name: group for group in study.groups}
        self.records, self.steps = records, dict[str, LatestStep]()

    def step(self, training: str, done: float, loss: float, accuracy: float) -> None:
        """Take what a worker reports between two epochs."""
        known = self.steps.get(training)
        if known is not None and known.done <= done:
            known.add(done, loss, accuracy)
            return
        epochs, now = next((each.epochs for each in self.records if each.name == training), 0), self.now()
        self.steps[training] = LatestStep(done, loss, accuracy, now, done, epochs, now)

    def update(self, records: list[TrainingRecord]) -> None:
        """Take new records."""
        training = {record.name: record for record in records if record.status == "training"}
        self.records, self.waits = records, False
        if any(record.group not in self.groups for record in records):  # added since the study was started
            self.groups = {group.name: group for group in self.study.store.with_retry(lambda: self.study.groups)}
        self.steps = {name: step for name, step in self.steps.items() if name in training}
        for name, step in self.steps.items():
            if step.epochs != training[name].epochs:
                step.epochs, step.since = training[name].epochs, self.now()

    def status(self, record: TrainingRecord) -> str:
        """Its status; a worker that reports it is ahead of the records."""
        return "training" if record.name in self.steps else record.status

    @property
    def measure(self) -> str:
        """What the score of predictions is called: `accuracy`, or `r2` if the trainings report that."""
        lines = (record.curve[-1] for record in self.records if record.curve)
        return "r2" if any(line.get("r2") is not None for line in lines) else "accuracy"

    def position(self, record: TrainingRecord) -> float:
        """The epochs that are done, with a fraction if it is trained on this machine."""
        step = self.steps.get(record.name)
        if step is None:
            return record.epochs
        has_restarted = step.done < record.epochs - 1  # where the earlier attempt's checkpoint is out of reach
        return step.done if has_restarted else max(step.done, record.epochs)

    def seconds(self, record: TrainingRecord) -> float:
        """Its training time, up to now if it is trained on this machine."""
        step = self.steps.get(record.name)
        return record.seconds + (0.0 if step is None else self.now() - step.since)

    def category(self, record: TrainingRecord) -> str:
        """Its status if it is in training, waiting, failed or diverged; otherwise it is done."""
        status = self.status(record)
        return status if status in ("training", "waiting", "failed", "diverged") else "done"

    @property
    def counts(self) -> Counter[str]:
        """How many trainings there are of each category."""
        return Counter(map(self.category, self.records))

    @property
    def done(self) -> int:
        """How many trainings have ended."""
        counts = self.counts
        return counts.total() - counts["training"] - counts["waiting"]

    @property
    def has_settings(self) -> bool:
        """Whether any training has searched settings."""
        return any(record.settings for record in self.records)

    @property
    def has_several_hosts(self) -> bool:
        """Whether workers on more than one machine have trained."""
        return len({record.host for record in self.records if record.worker}) > 1

    @property
    def is_comparable(self) -> bool:
        """Whether all trainings measure the same on the same dataset, so that one of them is the best."""
        used = {record.group for record in self.records}
        kinds = {self._measures(name) for name in used if name in self.groups}
        return len(kinds) == 1 and all(self.has_one_measure(name) for name in used)

    def _measures(self, group: str) -> tuple[object, ...]:
        """What the metric of a group's trainings depends on, besides the network."""
        config = self.groups[group].config
        trained = (config.label_smoothing, config.distill.teacher is not None) if self.metric == "loss" else ()
        return config.data.source, *trained

    def has_one_measure(self, group: str) -> bool:
        """Whether the metric means the same in all epochs; the loss of epochs that train hints is another one."""
        return self.metric != "loss" or group not in self.groups or not self.groups[group].config.distill.hint_epochs

    def best_first(self) -> list[TrainingRecord]:
        """The trainings that have a value, best first; those on different data in the order of the study."""
        known = [record for record in self.records if record.value is not None]
        if not self.is_comparable:
            return known
        sign = -1 if self.maximise else 1

        def place(record: TrainingRecord) -> tuple[float, float]:
            assert record.value is not None
            return sign * record.value, math.inf if record.loss is None else record.loss

        return sorted(known, key=place)

    @property
    def best(self) -> TrainingRecord | None:
        """The best training so far, if there are several that can be compared."""
        ranked = self.best_first()
        return ranked[0] if ranked and self.is_comparable and len(self.records) > 1 else None

    def describe(self, width: int | None = None) -> str:
        """How far the study is in one line; a narrow one says less about the best training."""
        counts, best = self.counts, self.best
        failed = f" ({counts['failed']} failed)" if counts["failed"] else ""
        text = f"{self.name}: {self.done} of {len(self.records)} done{failed}"
        if self.done < len(self.records):
            has_workers = self.jobs or counts["training"]
            text += f", {counts['training']} in training" if has_workers else ", waiting for workers"
        left = self.describe_left()
        versions = [text + left]
        if self.stops:
            versions = [f"{text}; stopping, press Ctrl-C again to quit at once", f"{text}; stopping"]
        elif self.waits:
            versions = [f"{text}; the server does not answer, trying again", f"{text}; waiting for the server"]
        elif best is not None and best.value is not None:
            value = format_value(best.value, self.metric)
            versions = [f"{text}, best: {best.name} {metric_label(self.metric)} {value}{left}", *versions]
            versions.insert(1, f"{text}, best: {best.name} {value}{left}")
        return next((each for each in versions if width is None or len(each) <= width), versions[-1])

    def describe_left(self) -> str:
        """The end of a sentence: how much time is left, and how much of the budget."""
        parts, seconds = [], self.time_left().study
        if seconds is not None:
            parts.append(f", about {format_left(seconds)} left")
        if self.budget.seconds is not None and self.done < len(self.records):
            time_left = max(0.0, self.began + self.budget.seconds - self.now())
            parts.append(f", {format_left(time_left)} of the budget")
        if self.budget.epochs is not None and self.done < len(self.records):
            epochs = max(0, self.budget.epochs - sum(record.epochs for record in self.records))
            parts.append(f", {plural(epochs, 'epoch')} of the budget")
        return "".join(parts)

    def time_left(self) -> TimeLeft:
        """An estimate of the time left."""
        return estimate_time_left(self)


def _title(folder: Path) -> str:
    """The name of a study as people know it, even if it was moved since it was started: seeds, demo/1."""
    return f"{folder.parent.name}/{folder.name}" if folder.name.isdecimal() else folder.name
