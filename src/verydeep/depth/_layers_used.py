"""How many layers the trained deep networks use: their layers are closed one after the other on held-out data."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from verydeep.analysis import (
    DepthUsage,
    LesionStudy,
    depth_usage,
    greedy_lesions,
    lesion_study,
    most_closed,
    some_samples,
)
from verydeep.data import Dataset
from verydeep.depth._answer import LayersUsed
from verydeep.depth._rule import DRAWS, FEWEST_SEEDS
from verydeep.training import Run, make_objective

Array = NDArray[np.float64]
_TRAINING_SAMPLES = 1000  # on which the order is selected
_HELD_OUT_SAMPLES = 5000  # on which the layers are counted, per seed
_MOST_STEPS = 25  # comparisons of layers; several are closed after each in deeper networks


def close_layers(run: Run, dataset: Dataset) -> tuple[DepthUsage, LesionStudy]:
    """Close the layers of a run's network, all together and each by itself.

    Args:
        run: The run.
        dataset: The data as its seed sees it.
    """
    assert dataset.held_out is not None
    model, objective = run.model, make_objective(run.config, dataset)
    train = some_samples(dataset.train, _TRAINING_SAMPLES)
    held_out = some_samples(dataset.held_out, _HELD_OUT_SAMPLES)
    group = max(1, model.highway_depth // _MOST_STEPS)
    greedy = greedy_lesions(
        model, held_out, "held-out data", train=train, group=group, choosing=None, objective=objective
    )
    return depth_usage(greedy), lesion_study(model, held_out, "held-out data", objective=objective)


def layers_used(
    seeds: Sequence[tuple[Run, Dataset]], plain: int, done: Callable[[float], None] = lambda _share: None
) -> tuple[LayersUsed, list[DepthUsage]]:
    """Count the layers that the networks of several seeds use.

    Args:
        seeds: The run of each seed and the data as it sees it.
        plain: The number of hidden layers that cannot be closed: the input layer, or the plain convolutions.
        done: Called with the fraction of the work that is done.

    Returns:
        The result over all seeds, and the result of each.
    """
    usages, lesions = list[DepthUsage](), list[LesionStudy]()
    for number, (run, dataset) in enumerate(seeds):
        usage, lesion = close_layers(run, dataset)
        usages.append(usage)
        lesions.append(lesion)
        done((number + 1) / len(seeds))
    model = seeds[0][0].model
    counts = [len(usage.kept) for usage in usages]
    kept = np.arange(model.highway_depth, -1, -1)  # after closing 0, 1, ... layers
    score = np.mean([1 - usage.greedy.error for usage in usages], 0)
    low, high = _band(usages)
    costs = np.stack([lesion.loss - lesion.baseline.loss for lesion in lesions])
    noise = np.stack([_known(lesion.loss_standard_error) for lesion in lesions])
    found = LayersUsed(
        depth=model.highway_depth + plain,
        used=int(np.median(counts)) + plain,
        seeds=tuple(count + plain for count in counts),
        interval=_interval(usages, plain),
        kept=tuple(int(count) + plain for count in kept[::-1]),
        score=_plain(score[::-1]),
        score_low=_plain(low[::-1]),
        score_high=_plain(high[::-1]),
        cost=_plain(costs.mean(0)),
        cost_error=_plain(np.sqrt(np.maximum((noise**2).sum(0) / len(noise) ** 2, _over_seeds(costs)))),
        samples=sum(usage.greedy.samples for usage in usages),
    )
    return found, usages


def _known(values: Array | None) -> Array:
    assert values is not None  # only results of earlier versions have none
    return np.nan_to_num(values)


def _over_seeds(values: Array) -> Array:
    """The variance of the mean over seeds."""
    return values.var(0, ddof=1) / len(values) if len(values) > 1 else np.zeros(values.shape[1])


def _drawn(usages: Sequence[DepthUsage]) -> NDArray[np.int64]:
    """The seeds of each draw, with replacement, `(draw, seed)`; always the same."""
    return np.random.default_rng(0).integers(0, len(usages), (DRAWS, len(usages)))


def _interval(usages: Sequence[DepthUsage], plain: int) -> tuple[int, int] | None:
    """The 95 % interval of the median over seeds: 1,000 draws of seeds, and of samples within each."""
    if len(usages) < FEWEST_SEEDS:
        return None
    per_seed = []
    for usage in usages:
        draws = usage.greedy.draws
        assert draws is not None
        kept = len(usage.greedy.layers) - most_closed(draws, usage.allowed)
        per_seed.append(np.resize(kept, DRAWS))
    drawn = np.take_along_axis(np.stack(per_seed, 1), _drawn(usages), 1)
    low, high = np.percentile(np.median(drawn, axis=1), (2.5, 97.5), method="inverted_cdf")
    middle = int(np.median([len(usage.kept) for usage in usages]))
    return min(int(low), middle) + plain, max(int(high), middle) + plain


def _band(usages: Sequence[DepthUsage]) -> tuple[Array, Array]:
    """The 95 % interval of the mean score at every point of the curve."""
    draws = np.stack([np.resize(_scores(usage), (DRAWS, len(usage.greedy.error))) for usage in usages], 1)
    chosen = np.take_along_axis(draws, _drawn(usages)[:, :, None], 1).mean(1)
    low, high = np.percentile(
        np.minimum(chosen, 1.0), (2.5, 97.5), axis=0
    )  # rises of single draws may exceed the error
    return low, high


def _scores(usage: DepthUsage) -> Array:
    assert usage.greedy.draws is not None
    scores: Array = 1 - usage.greedy.error[0] - usage.greedy.draws.astype(float)
    return scores


def _plain(values: Array) -> tuple[float, ...]:
    return tuple(float(value) for value in np.clip(np.nan_to_num(values, nan=-1e30), -1e30, 1e30))
