"""How long the rest of the tables takes, from the epochs measured so far."""

from __future__ import annotations

from functools import cache
from statistics import median
from typing import TYPE_CHECKING

import torch

from verydeep.models import create_model, multiply_adds
from verydeep.paper._duration import format_duration
from verydeep.paper.tables._rows import TEACHER, TableRow

if TYPE_CHECKING:
    from verydeep.paper.tables._results import TableResult
    from verydeep.paper.tables._study import Tables
    from verydeep.training import ModelConfig


def time_left(tables: Tables, jobs: int) -> str:
    """The time that the rest takes, in words; a network without epochs is estimated from its multiply-adds."""
    until = "" if tables.epochs is None else f" up to epoch {tables.epochs}"
    known = {row: seconds for row, result in tables.found.items() if (seconds := epoch_seconds(result))}
    missing = tables.missing()
    if missing and not known:
        return "no epoch trained yet"
    each = median(seconds / _row_multiply_adds(tables, row) for row, seconds in known.items()) if known else 0.0
    cost = {row: known.get(row, each * _row_multiply_adds(tables, row)) for row in tables.configs}
    total = sum(tables.epochs_left(row, seed) * cost[row] for row, seed in missing)
    return f"{format_duration(total / max(1, min(jobs, len(missing))))} left{until}"


def epoch_seconds(result: TableResult) -> float | None:
    """Seconds per epoch, without the epochs that train hints, which cost less."""
    first = result.config.distill.hint_epochs if result.config else 0
    times = []
    for curve in result.curves.values():
        if len(curve.metrics) > first:
            began = curve.metrics[first - 1].seconds if first else 0.0
            times.append((curve.seconds - began) / (len(curve.metrics) - first))
    return median(times) if times else None


def _row_multiply_adds(tables: Tables, row: TableRow) -> float:
    """Multiply-adds per sample; those of a teacher, which only runs forward, count a third."""
    teacher = _multiply_adds(tables.configs[TEACHER].model) / 3 if tables.has_teacher(row) else 0
    return _multiply_adds(tables.configs[row].model) + teacher


@cache
def _multiply_adds(model: ModelConfig) -> float:
    with torch.device("meta"):
        return multiply_adds(create_model(model.name, **model.overrides()))
