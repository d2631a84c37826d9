"""Results of analyses that nobody made, small and with values one can recognise."""

from typing import Any

import numpy as np

from verydeep.analysis import (
    ClassRouting,
    DepthUsage,
    Findings,
    GateStatistics,
    GreedyLesion,
    LesionStudy,
    PairLesion,
    PruneReport,
    Score,
    SignalFlow,
)

DEPTH, WIDTH = 6, 5
CLASSES = ("cat", "dog", "emu", "fox")


def names(depth: int = DEPTH) -> tuple[str, ...]:
    return tuple(f"stack.{layer}" for layer in range(depth))


def rows(values: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    return tuple(values)


def gates(depth: int = DEPTH, width: int = WIDTH, start: float = -2.0) -> GateStatistics:
    rng = np.random.default_rng(0)
    mean = rng.uniform(0, 0.4, (depth, width))
    return GateStatistics(
        layers=names(depth),
        samples=1000,
        bias=rows(rng.normal(start - 0.3, 0.2, (depth, width))),
        initial_bias=rows(np.full((depth, width), start)),
        mean=rows(mean),
        variance=rows(mean * (1 - mean) / 4),
        open_share=rows(mean / 2),
        shut_share=rows((1 - mean) / 2),
        sample=3,
        sample_gates=rows(rng.uniform(0, 1, (depth, width))),
        sample_outputs=rows(rng.normal(0, 1, (depth, width))),
        change=1.0 / np.arange(1, depth + 1) ** 2,
    )


def conv_gates() -> GateStatistics:
    """Three layers with 2, 3 and 3 feature maps of 4 by 4."""
    rng = np.random.default_rng(1)
    widths = (2, 3, 3)
    flat = tuple(rng.uniform(0, 1, width) for width in widths)
    maps = tuple(rng.uniform(0, 1, (width, 4, 4)) for width in widths)
    shared: dict[str, Any] = dict.fromkeys(("mean", "variance", "open_share", "shut_share"), flat)
    bias = tuple(np.full(width, -1.5) for width in widths)
    start = tuple(np.full(width, -1.0) for width in widths)
    one: dict[str, Any] = {"sample": 0, "sample_gates": maps, "sample_outputs": maps, "change": np.ones(3)}
    return GateStatistics(names(3), 10, bias, start, **shared, **one)


def routing(classes: tuple[str, ...] = CLASSES, depth: int = DEPTH, width: int = WIDTH) -> ClassRouting:
    """The last class is the farthest from the first; only the first block of every layer is beyond noise."""
    count = len(classes)
    difference = np.full((depth, count, width), 0.01)
    difference[:, :, 0] = np.linspace(-0.3, 0.3, count)
    distance = np.abs(np.subtract.outer(np.arange(count), np.arange(count))) / 10.0
    joined = [[0 if k == 0 else count + k - 1, k + 1, 0.1 * (k + 1), k + 2] for k in range(count - 1)]
    return ClassRouting(
        layers=names(depth),
        classes=classes,
        counts=np.full(count, 250),
        mean=rows(np.full((depth, width), 0.2)),
        difference=rows(difference),
        standard_error=rows(np.full((depth, count, width), 0.02)),
        distance=distance,
        linkage=np.array(joined, float),
        probe_accuracy=0.91,
        probe_chance=0.25,
        probe_samples=1000,
    )


def lesions(depth: int = DEPTH) -> LesionStudy:
    error = 0.02 + 0.3 / np.arange(1, depth + 1) ** 2
    return LesionStudy(names(depth), "train", 1000, Score(0.05, 0.02), 3 * error, error)


def pairs(depth: int = DEPTH) -> PairLesion:
    single = 0.1 / np.arange(1, depth + 1)
    error = 0.02 + np.add.outer(single, single)
    np.fill_diagonal(error, 0.02 + single)
    error[0, 1] = error[1, 0] = 0.9  # far more than the two alone
    return PairLesion(names(depth), "valid", 500, Score(0.05, 0.02), 2 * error, error)


def usage(depth: int = DEPTH) -> DepthUsage:
    """All but the first two layers are idle."""
    order = tuple(range(depth - 1, -1, -1))
    error = np.where(np.arange(depth + 1) <= depth - 2, 0.02, 0.5)
    greedy = GreedyLesion(names(depth), "train", 1000, order, 3 * error, error)
    return DepthUsage(greedy, 0.001, (0, 1), order[: depth - 2])


def flow(depth: int = DEPTH) -> tuple[SignalFlow, ...]:
    shrinking = 0.1 ** np.arange(depth, dtype=float)
    return (
        SignalFlow("highway, at initialisation", names(depth), np.ones(depth), np.full(depth, 0.01)),
        SignalFlow("highway, trained", names(depth), np.full(depth, 2.0), np.full(depth, 0.02)),
        SignalFlow("plain, at initialisation", names(depth), shrinking, np.append(shrinking[:-1], 0.0)),
    )


def pruned() -> PruneReport:
    return PruneReport(
        kept=(0, 1),
        removed=(5, 4, 3, 2),
        layers=names(),
        split="valid",
        tolerance=0.001,
        chosen=(Score(0.05, 0.02), Score(0.05, 0.021)),
        test=(Score(0.06, 0.03), Score(0.06, 0.032)),
        tuned=Score(0.05, 0.025),
        parameters=(3000, 1000),
        multiply_adds=(2800, 900),
        latency=(0.003, 0.0015),
        latency_batch=100,
    )


def findings() -> Findings:
    return Findings(gates(), routing(), lesions(), pairs(), usage(), flow(), pruned())
