"""What an epoch of each network costs: seconds, measured on the first batches, or one epoch each."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from verydeep.data import Dataset, Split
from verydeep.depth._problem import Candidate, Problem
from verydeep.training import train_in_memory

_BATCHES = 12  # that are timed
_LONG = 2.0  # seconds, after which fewer batches are enough
_PER_EPOCH = 0.004  # seconds for what a study does after every epoch
_PER_TRAINING = 0.25  # seconds to claim a training, to make its folder and to record its result
_STILL = 1e-9  # a learning rate that hardly changes the network
_BESIDE = 1.15  # how much slower trainings are while others run on the same processor


@dataclass(frozen=True)
class Cost:
    """The cost of training, in seconds of one core or in epochs.

    Attributes:
        unit: `seconds` or `epochs`.
        per_epoch: Returns the cost of an epoch of a candidate with some width.
        per_training: The cost of a training besides its epochs.
    """

    unit: str
    per_epoch: Callable[[Candidate, int], float]
    per_training: float = 0.0

    def of(self, candidate: Candidate, epochs: float, widths: tuple[int, ...], trainings: float = 1) -> float:
        """The expected cost of some trainings, if all widths are equally likely."""
        epoch = sum(self.per_epoch(candidate, width) for width in widths) / len(widths)
        return trainings * (epochs * epoch + self.per_training)


def count_epochs() -> Cost:
    """Every epoch costs the same, so that a plan does not depend on the machine."""
    return Cost("epochs", lambda _candidate, _width: 1.0)


def time_epochs(problem: Problem, most: int, batch_size: int) -> Cost:
    """Time a few batches of shallow and deep networks of each kind and width; others are interpolated.

    Args:
        problem: The data and the family of networks.
        most: The depth of the deepest networks.
        batch_size: Samples per update.
    """
    dataset = problem.dataset
    batches = max(1, len(dataset.train) // batch_size)
    shallow = min(2, most)
    known: dict[
        tuple[str, int], tuple[float, float]
    ] = {}  # by kind and width: the cost of a shallow and a deep network
    for kind in ("highway", "plain"):
        for width in problem.widths:
            ends = (shallow, most) if most > shallow else (shallow,)
            times = [_seconds(problem, Candidate(kind, depth), width, batch_size) for depth in ends]
            known[kind, width] = times[0], times[-1]
    linear = _seconds(problem, Candidate("highway", 0), problem.widths[0], batch_size)
    whole = batches / min(batches, _BATCHES)

    def per_epoch(candidate: Candidate, width: int) -> float:
        if candidate.depth == 0:
            seconds = linear
        else:
            low, high = known[candidate.kind, width]
            share = (candidate.depth - shallow) / max(1, most - shallow)
            seconds = max(linear, low + share * (high - low))
        return _BESIDE * seconds * whole + _PER_EPOCH

    return Cost("seconds", per_epoch, _PER_TRAINING)


def _seconds(problem: Problem, candidate: Candidate, width: int, batch_size: int) -> float:
    """The time of an epoch with as many batches as are timed, and of validation in proportion."""
    config = problem.config(candidate, epochs=2, batch_size=batch_size)
    model = replace(config.model, width=width)
    optim = replace(config.optim, lr=_STILL)  # a rate that suits the whole data may diverge on a few batches
    dataset = _few(problem.dataset, batch_size * _BATCHES)
    best = float("inf")
    began = time.perf_counter()
    for _ in range(3):
        trained = train_in_memory(replace(config, model=model, optim=optim, patience=0, threads=1), dataset)
        first, second = (line.seconds for line in trained.metrics[:2])
        best = min(best, second - first, first)
        if time.perf_counter() - began > _LONG:
            break
    return best


def _few(dataset: Dataset, samples: int) -> Dataset:
    share = min(1.0, samples / len(dataset.train))

    def some(split: Split, count: int) -> Split:
        rows = torch.arange(max(1, min(count, len(split))))
        return replace(split, x=split.x[rows], y=split.y[rows])

    assert dataset.valid is not None
    valid = some(dataset.valid, round(share * len(dataset.valid)))
    return replace(dataset, train=some(dataset.train, samples), valid=valid)
