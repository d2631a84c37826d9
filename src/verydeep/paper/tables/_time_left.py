"""How long the rest of the tables takes, from the epochs measured so far."""

from functools import cache
from statistics import median

import torch

from verydeep.models import create_model, multiply_adds
from verydeep.paper._duration import format_duration
from verydeep.paper.tables._results import TableResult
from verydeep.paper.tables._rows import TEACHER, TableRow
from verydeep.paper.tables._training_order import Schedule
from verydeep.training import ModelConfig


def time_left(schedule: Schedule, workers: int) -> str:
    """The time that the rest takes, in words; a network without epochs is estimated from its multiply-adds."""
    until = "" if schedule.epochs is None else f" up to epoch {schedule.epochs}"
    known = {row: seconds for row, result in schedule.results.items() if (seconds := epoch_seconds(result))}
    tasks = schedule.tasks()
    if tasks and not known:
        return "no epoch trained yet"
    each = median(seconds / _row_multiply_adds(schedule, row) for row, seconds in known.items()) if known else 0.0
    cost = {row: known.get(row, each * _row_multiply_adds(schedule, row)) for row in schedule.configs}
    total = sum(schedule.epochs_missing(task) * cost[task.row] for task in tasks)
    return f"{format_duration(total / max(1, min(workers, len(tasks))))} left{until}"


def epoch_seconds(result: TableResult) -> float | None:
    """Seconds per epoch, without the epochs that train hints, which cost less."""
    first = result.config.distill.hint_epochs if result.config else 0
    times = []
    for curve in result.curves.values():
        if len(curve.metrics) > first:
            began = curve.metrics[first - 1].seconds if first else 0.0
            times.append((curve.seconds - began) / (len(curve.metrics) - first))
    return median(times) if times else None


def _row_multiply_adds(schedule: Schedule, row: TableRow) -> float:
    """Multiply-adds per sample; those of a teacher, which only runs forward, count a third."""
    config = schedule.configs[row]
    teacher = _multiply_adds(schedule.configs[TEACHER].model) / 3 if config.distill.teacher is not None else 0
    return _multiply_adds(config.model) + teacher


@cache
def _multiply_adds(model: ModelConfig) -> float:
    with torch.device("meta"):
        return multiply_adds(create_model(model.name, **model.overrides()))
