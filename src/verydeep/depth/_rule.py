"""The definition of the answer: the smallest depth that is as good as the best, and how sure that is.

Every network is measured on the same held-out samples with the same seeds, so that networks are compared pair by pair:
what is easy or hard about a sample, or about a seed's part of the data, cancels out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verydeep.objectives import draw_samples

Array = NDArray[np.float64]

DRAWS = 1000
FEWEST_SEEDS = 3  # below which an interval would mean nothing
_MOST_BLOCKS = 20_000  # samples are drawn in random blocks if there are more


@dataclass(frozen=True)
class Choice:
    """Which of several networks is enough.

    Attributes:
        chosen: The index of the network of the smallest depth that is within one standard error of the best.
        best: The index of the network with the lowest mean loss.
        interval: The smallest and the largest depth that 95 % of the draws choose; None with fewer than three seeds.
        excess: By how much each network's mean loss is above that of the best, which other seeds name, `(network,)`.
        error: The standard error of each of these differences, `(network,)`.
    """

    chosen: int
    best: int
    interval: tuple[int, int] | None
    excess: Array
    error: Array


def choose_depth(depths: Sequence[int], losses: Sequence[Array]) -> Choice:
    """Find the smallest depth whose mean held-out loss is within one standard error of the best depth's.

    The lowest of many mean losses is partly luck, and a network that is as good would seem worse. So on the samples of
    each seed, networks are compared with the one that is best by the other seeds: if all networks are equally good,
    the expected difference is 0.

    Args:
        depths: The depth of each network; several may have the same.
        losses: For each seed, the loss of every sample that it held out with every network, `(sample, network)`.
    """
    seeds = np.arange(len(losses))
    by_seed = np.stack([each.mean(0) for each in losses])
    errors = paired_errors(losses)
    excess, error = _above_the_best(by_seed, seeds, errors, depths)
    means = by_seed.mean(0)
    chosen = _smallest(excess, error, depths)
    interval = None
    if len(losses) >= FEWEST_SEEDS:
        draws = zip(*bootstrap_seeds(losses), strict=True)
        found = [depths[_smallest(*_above_the_best(draw, drawn, errors, depths), depths)] for draw, drawn in draws]
        low, high = np.percentile(found, (2.5, 97.5), method="inverted_cdf")
        answer = depths[chosen]
        interval = min(int(low), answer), max(int(high), answer)
    return Choice(chosen, _best(means, depths), interval, excess, error)


def paired_errors(losses: Sequence[Array]) -> Array:
    """The standard error of the difference between the mean losses of every two networks, `(network, network)`.

    Differences vary over samples and over seeds. With three seeds, the variation over seeds is known only roughly, and
    may come out far too small by chance; the variation over samples is a lower bound.

    Args:
        losses: For each seed, which has samples of its own, `(sample, network)`.
    """
    seeds = len(losses)
    by_seed = np.stack([each.mean(0) for each in losses])  # (seed, network)
    over_samples: Array = np.sum([_variance_of_mean(each) for each in losses], 0) / seeds**2
    if seeds < 2:
        return np.sqrt(over_samples)
    differences = by_seed[:, :, None] - by_seed[:, None, :]
    over_seeds = differences.var(0, ddof=1) / seeds
    errors: Array = np.sqrt(np.maximum(over_samples, over_seeds))
    return errors


def bootstrap_means(values: Sequence[Array]) -> Array:
    """The mean of every column over draws of seeds, and of samples within each, with replacement: `(draw, column)`.

    Args:
        values: For each seed, which has samples of its own, `(sample, column)`.
    """
    means, _ = bootstrap_seeds(values)
    mean: Array = means.mean(1)
    return mean


def bootstrap_seeds(values: Sequence[Array]) -> tuple[Array, NDArray[np.int64]]:
    """Draws of seeds, and of samples within each, with replacement; they are always the same.

    Args:
        values: For each seed, which has samples of its own, `(sample, column)`.

    Returns:
        The mean of every column over the samples of every drawn seed, `(draw, drawn seed, column)`, and which seeds
        were drawn, `(draw, drawn seed)`.
    """
    random, seeds = np.random.default_rng(0), len(values)
    drawn = random.integers(0, seeds, (DRAWS, seeds))
    means = np.empty((drawn.size, values[0].shape[1]))
    for number, each in enumerate(values):
        places = np.flatnonzero(drawn == number)
        blocks = _blocks(each, random)
        for rows, counts in draw_samples(len(blocks), len(places), random):
            means[places[rows]] = counts.astype(np.float64) @ blocks / len(blocks)
    return means.reshape(*drawn.shape, -1), drawn


def _blocks(values: Array, random: np.random.Generator) -> Array:
    """The values, or the means of random blocks of them if drawing each of them would take long."""
    size = -(-len(values) // _MOST_BLOCKS)
    if size == 1:
        return values
    whole = len(values) // size * size
    means: Array = values[random.permutation(len(values))[:whole]].reshape(-1, size, values.shape[1]).mean(1)
    return means


def _variance_of_mean(losses: Array) -> Array:
    """The variance of the mean of `losses[:, i] - losses[:, j]` for all i and j."""
    samples = len(losses)
    if samples < 2:
        return np.zeros((losses.shape[1], losses.shape[1]))
    covariance = np.atleast_2d(np.cov(losses, rowvar=False))
    own = covariance.diagonal()
    return np.maximum(own[:, None] + own[None, :] - 2 * covariance, 0) / samples


def _above_the_best(
    by_seed: Array, seeds: NDArray[np.int64], errors: Array, depths: Sequence[int]
) -> tuple[Array, Array]:
    """How far each network's mean loss is above the best network's, and the standard error of that.

    Args:
        by_seed: The mean losses on what each seed held out, `(seed, network)`.
        seeds: Which seed each row belongs to; a draw may hold one several times.
        errors: The standard error of the difference between every two networks.
        depths: The depth of each network.
    """
    differences, variances = np.zeros_like(by_seed), np.zeros_like(by_seed)
    for seed in np.unique(seeds):
        here = seeds == seed
        others = by_seed if here.all() else by_seed[~here]
        best = _best(others.mean(0), depths)
        differences[here] = by_seed[here] - by_seed[here, best, None]
        variances[here] = errors[:, best] ** 2
    return differences.mean(0), np.sqrt(variances.mean(0))


def _best(means: Array, depths: Sequence[int]) -> int:
    """The lowest mean; of equal ones, the smallest depth."""
    return min(range(len(depths)), key=lambda index: (means[index], depths[index]))


def _smallest(excess: Array, error: Array, depths: Sequence[int]) -> int:
    """The smallest depth within one standard error of the best; of several such networks, the better one."""
    enough = [index for index in range(len(depths)) if excess[index] <= error[index]]
    return min(enough, key=lambda index: (depths[index], excess[index]))
