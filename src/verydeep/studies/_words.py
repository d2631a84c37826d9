"""Metrics, settings and times of a study in words."""

from __future__ import annotations

import math

from verydeep.studies._space import Settings
from verydeep.words import MEASURES, measure_of


def metric_label(metric: str) -> str:
    """A metric in words: validation accuracy."""
    split = metric.removesuffix(measure_of(metric)).replace("valid_", "validation ").replace("_", " ")
    return split + MEASURES.get(measure_of(metric), measure_of(metric).replace("_", " "))


def format_value(value: float | None, metric: str) -> str:
    """A value of a metric, with a percent sign for accuracies; empty without one."""
    if value is None:
        return ""
    return f"{value:.2%}" if metric.endswith("accuracy") else f"{value:.4g}"


def format_settings(settings: Settings) -> str:
    """Searched settings, without the names of their tables where that is unambiguous: lr=0.1 depth=7."""
    last = [name.rpartition(".")[2] for name in settings]
    names = (short if last.count(short) == 1 else name for name, short in zip(settings, last, strict=True))
    return " ".join(f"{name}={_short(value)}" for name, value in zip(names, settings.values(), strict=True))


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def format_left(seconds: float) -> str:
    """A time that is only an estimate, rounded up: 20 s, 5 min, 2.5 h, 3 days."""
    minutes, hours = math.ceil(seconds / 60), math.ceil(seconds / 1800) / 2
    if seconds <= 50:
        return f"{max(10, math.ceil(seconds / 10) * 10)} s"
    if minutes <= 10:
        return f"{minutes} min"
    if seconds <= 55 * 60:
        return f"{math.ceil(minutes / 5) * 5} min"
    if hours <= 10:
        return f"{hours:g} h"
    return f"{math.ceil(hours)} h" if hours <= 48 else f"{math.ceil(hours / 24)} days"
