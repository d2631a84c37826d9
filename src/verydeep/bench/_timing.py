"""Timing that tolerates a busy machine: competitors take turns in rounds, and ratios are taken within a round."""

import statistics
import time
from collections.abc import Callable
from typing import Any

_SHORTEST = 0.2  # seconds of steps in one turn, so that data is in the cache as it is in training


def measure(steps: dict[str, Callable[[], None]], seconds: float, rounds: int) -> dict[str, dict[str, Any]]:
    """Time one step of each competitor, in interleaved rounds, and compare it with the first.

    Args:
        steps: The steps to time, by name.
        seconds: Approximate time limit.
        rounds: Minimum number of rounds; the maximum is ten times as many. After ten times the time limit, three rounds
            are enough.
    """
    repeats = {name: _repeats(step) for name, step in steps.items()}
    times: dict[str, list[float]] = {name: [] for name in steps}
    start, done = time.perf_counter(), 0
    order = list(steps)
    while done < 3 or _go_on(time.perf_counter() - start, done, seconds, rounds):
        for name in order:
            times[name].append(_time(steps[name], repeats[name]))
        order = order[1:] + order[:1]  # another competitor goes first
        done += 1
    first = next(iter(steps))
    return {name: summary(values, times[first]) for name, values in times.items()}


def _go_on(spent: float, done: int, seconds: float, rounds: int) -> bool:
    return spent < 10 * seconds if done < rounds else spent < seconds and done < 10 * rounds


def summary(values: list[float], ours: list[float]) -> dict[str, Any]:
    """Minimum and median in milliseconds, the ratio of minima to ours, and the quartiles of the rounds' ratios."""
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
