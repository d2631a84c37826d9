"""Timing that tolerates a busy machine: competitors take turns in rounds, and ratios are taken within a round."""

import statistics
import time
from collections.abc import Callable
from typing import Any

_IDLE = 0.02  # seconds
_SHORTEST = 0.2  # seconds of steps in one turn, so that data is in the cache as it is in training


Work = tuple[Callable[[], None], int]
"""What is timed, and how many steps it takes."""


def measure(works: dict[str, Work], seconds: float, rounds: int) -> dict[str, dict[str, Any]]:
    """Time one step of each competitor, in interleaved rounds, and compare it with the first.

    Before each turn there is a pause, in which threads that wait busily for the next operation of another library end.

    Args:
        works: What is timed, by name.
        seconds: Approximate time limit.
        rounds: Minimum number of rounds; the maximum is ten times as many. After ten times the time limit, three rounds
            are enough.
    """
    repeats = {name: _repeats(work) for name, (work, _) in works.items()}
    times: dict[str, list[float]] = {name: [] for name in works}
    start, done = time.perf_counter(), 0
    order = list(works)
    while done < 3 or _go_on(time.perf_counter() - start, done, seconds, rounds):
        for name in order:
            time.sleep(_IDLE)
            work, steps = works[name]
            work()
            times[name].append(_time(work, repeats[name]) / steps)
        order = order[1:] + order[:1]  # another competitor goes first
        done += 1
    first = next(iter(times))
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


def _repeats(work: Callable[[], None]) -> int:
    work()
    return max(1, round(_SHORTEST / max(_time(work, 1), 1e-7)))


def _time(work: Callable[[], None], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - start) / repeats
