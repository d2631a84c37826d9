"""Timing that a busy machine disturbs little: competitors take turns, and ratios are taken within a turn."""

import statistics
import time
from collections.abc import Callable
from typing import Any

_SHORTEST = 0.2  # seconds of one turn: many steps after each other, as in training, find their data in the cache


def measure(steps: dict[str, Callable[[], None]], seconds: float, rounds: int) -> dict[str, dict[str, Any]]:
    """Times of one step of each competitor, and ratios to the first.

    Args:
        steps: What to time, by name.
        seconds: Roughly for how long.
        rounds: At least, and at most ten times so many; after ten times the seconds three are enough.
    """
    repeats = {name: _repeats(step) for name, step in steps.items()}
    times: dict[str, list[float]] = {name: [] for name in steps}
    start, done = time.perf_counter(), 0
    order = list(steps)
    while done < 3 or _go_on(time.perf_counter() - start, done, seconds, rounds):
        for name in order:
            times[name].append(_time(steps[name], repeats[name]))
        order = order[1:] + order[:1]  # each goes first in turn
        done += 1
    first = next(iter(steps))
    return {name: summary(values, times[first]) for name, values in times.items()}


def _go_on(spent: float, done: int, seconds: float, rounds: int) -> bool:
    return spent < 10 * seconds if done < rounds else spent < seconds and done < 10 * rounds


def summary(values: list[float], ours: list[float]) -> dict[str, Any]:
    """Minimum and median in milliseconds; how many times longer than ours, by the minimum, with quartiles of turns."""
    ratios = [value / mine for value, mine in zip(values, ours, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return {
        "min_ms": 1e3 * min(values),
        "median_ms": 1e3 * statistics.median(values),
        "rounds": len(values),
        "ratio": min(values) / min(ours),
        "ratio_quartiles": [low, middle, high],
    }


def _repeats(step: Callable[[], None]) -> int:
    step()
    return max(1, round(_SHORTEST / max(_time(step, 1), 1e-7)))


def _time(step: Callable[[], None], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        step()
    return (time.perf_counter() - start) / repeats
