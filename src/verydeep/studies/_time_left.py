"""An estimate of the time that the rest of a study takes."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from verydeep.studies._halving import Stages

if TYPE_CHECKING:
    from verydeep.studies._overview import Overview
    from verydeep.studies._records import TrainingRecord


@dataclass(frozen=True)
class TimeLeft:
    """An estimate of the time left.

    Attributes:
        study: Seconds until everything is trained; None if nothing is known about it, or nothing is left.
        trainings: Seconds until each training ends that has not, by name, as if it did not have to wait.
    """

    study: float | None
    trainings: dict[str, float]


def estimate_time_left(overview: Overview) -> TimeLeft:
    """Estimate the time left from the measured seconds per epoch and the number of workers.

    A training that has no epoch yet is taken to be as fast as the others of its group, and a group without any epoch
    as fast as the mean of the other groups. One that waits is expected to get as far as those of its group that have
    ended, of which some were stopped early.
    """
    own = {record.name: speed for record in overview.records if (speed := _seconds_per_epoch(overview, record))}
    groups = _group_means({record.name: record.group for record in overview.records}, own)
    if not groups:
        return TimeLeft(None, {})
    others, shares = fmean(groups.values()), _shares_trained(overview.records)
    left, running = dict[str, float](), 0
    for record in overview.records:
        status = overview.status(record)
        if status in ("training", "waiting"):
            share = shares.get(record.group, 1.0) if status == "waiting" else 1.0
            epochs = max(0.0, record.goal * share - overview.position(record))
            left[record.name] = epochs * own.get(record.name, groups.get(record.group, others))
            running += status == "training"
    total = sum(left.values())
    total += sum(epochs * groups.get(group, others) for group, epochs in _later_stages(overview).items())
    workers = max(running, min(overview.jobs, len(left)))
    if not left or not workers:
        return TimeLeft(None, left)
    return TimeLeft(max(total / workers, _longest_wait(overview, left)), left)


def _seconds_per_epoch(overview: Overview, record: TrainingRecord) -> float | None:
    """The time per epoch of one training, without the epochs that train hints, which cost less."""
    step = overview.steps.get(record.name)
    if record.epochs and record.seconds:
        group = overview.groups.get(record.group)
        hints = 0 if group is None else group.config.distill.hint_epochs
        first, began = (hints, record.curve[hints - 1].seconds) if 0 < hints < len(record.curve) else (0, 0.0)
        return (record.seconds - began) / (record.epochs - first)
    if step is not None and step.done > step.first:
        return (overview.now() - step.began) / (step.done - step.first)
    return None


def _group_means(groups: dict[str, str], own: dict[str, float]) -> dict[str, float]:
    """The mean time per epoch of every group in which it is known."""
    speeds: dict[str, list[float]] = {}
    for name, speed in own.items():
        speeds.setdefault(groups[name], []).append(speed)
    return {group: fmean(each) for group, each in speeds.items()}


def _shares_trained(records: list[TrainingRecord]) -> dict[str, float]:
    """How far the trainings of every group got that have ended, as a share of their goal."""
    shares: dict[str, list[float]] = {}
    for record in records:
        if record.has_ended and record.goal and record.status != "failed":
            shares.setdefault(record.group, []).append(min(1.0, record.epochs / record.goal))
    return {group: fmean(each) for group, each in shares.items()}


def _later_stages(overview: Overview) -> dict[str, int]:
    """The epochs of stages that no training of the group has entered yet."""
    reached: dict[str, int] = {}
    for record in overview.records:
        reached[record.group] = max(reached.get(record.group, 0), record.goal)
    epochs = {}
    for name, goal in reached.items():
        group = overview.groups.get(name)
        if group is not None and isinstance(group.halving, Stages):
            ends = [min(epoch, group.last_epoch) for epoch in group.halving.epochs]
            stages = zip(ends, ends[1:], group.halving.trainings[1:], strict=False)
            epochs[name] = sum((end - begin) * count for begin, end, count in stages if end > goal)
    return epochs


def _longest_wait(overview: Overview, left: dict[str, float]) -> float:
    """The time until the last training ends if there are enough workers; students wait for their teachers."""
    teachers = {name: group.after or "" for name, group in overview.groups.items()}
    groups = {record.name: record.group for record in overview.records}

    def wait(training: str, seen: frozenset[str] = frozenset()) -> float:
        teacher = teachers.get(groups[training], "")
        before = wait(teacher, seen | {training}) if teacher in groups and teacher not in seen else 0.0
        return before + left.get(training, 0.0)

    return max(map(wait, left))
