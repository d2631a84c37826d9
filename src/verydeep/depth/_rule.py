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
        excess: By how much each network's mean loss is above that of the best, `(network,)`.
        error: The standard error of each of these differences, `(network,)`.
    """

    chosen: int
    best: int
    interval: tuple[int, int] | None
    excess: Array
    error: Array


def choose_depth(depths: Sequence[int], losses: Sequence[Array]) -> Choice:
    """Find the smallest depth whose mean held-out loss is within one standard error of the best depth's.

    Args:
        depths: The depth of each network; several may have the same.
        losses: For each seed, the loss of every sample that it held out with every network, `(sample, network)`.
    """
    means = np.mean([each.mean(0) for each in losses], 0)
    errors = paired_errors(losses)
    best = _best(means, depths)
    chosen = _smallest(means, errors, depths)
    interval = None
    if len(losses) >= FEWEST_SEEDS:
        draws = bootstrap_means(losses)
        found = [depths[_smallest(draw, errors, depths)] for draw in draws]
        low, high = np.percentile(found, (2.5, 97.5), method="inverted_cdf")
        answer = depths[chosen]
        interval = min(int(low), answer), max(int(high), answer)
    return Choice(chosen, best, interval, means - means[best], errors[:, best])


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


def bootstrap_means(values: Sequence[Array], draws: int = DRAWS) -> Array:
    """The mean of every column over draws of seeds, and of samples within each, with replacement: `(draw, column)`.

    Args:
        values: For each seed, which has samples of its own, `(sample, column)`.
        draws: The number of draws, which are always the same.
    """
    random, seeds = np.random.default_rng(0), len(values)
    drawn = random.integers(0, seeds, (draws, seeds))
    total = np.zeros((draws, values[0].shape[1]))
    for number, each in enumerate(values):
        places = np.flatnonzero((drawn == number).ravel()) // seeds  # the draws that this seed is in, perhaps twice
        blocks = _blocks(each, random)
        for rows, counts in draw_samples(len(blocks), len(places), random):
            np.add.at(total, places[rows], counts.astype(np.float64) @ blocks / (seeds * len(blocks)))
    return total


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


def _best(means: Array, depths: Sequence[int]) -> int:
    """The lowest mean; of equal ones, the smallest depth."""
    return min(range(len(depths)), key=lambda index: (means[index], depths[index]))


def _smallest(means: Array, errors: Array, depths: Sequence[int]) -> int:
    """The smallest depth within one standard error of the best; of several such networks, the better one."""
    best = _best(means, depths)
    enough = [index for index in range(len(depths)) if means[index] - means[best] <= errors[index, best]]
    return min(enough, key=lambda index: (depths[index], means[index]))
