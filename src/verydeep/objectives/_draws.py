"""Random draws of samples with replacement, for intervals by the bootstrap."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_CHUNK = 4_000_000  # numbers at a time


def draw_samples(samples: int, draws: int, random: np.random.Generator) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """How often each sample is drawn, in chunks: the numbers of the draws, and the counts `(draw, sample)`.

    Args:
        samples: The number of samples, in all and in every draw.
        draws: The number of draws.
        random: Draws the samples.

    Example:
        >>> import numpy as np
        >>> from verydeep.objectives import draw_samples
        >>> [(rows, counts.sum(1).tolist()) for rows, counts in draw_samples(5, 3, np.random.default_rng(0))]
        [(slice(0, 3, None), [5, 5, 5])]
    """
    step = max(1, _CHUNK // samples)
    for first in range(0, draws, step):
        rows = min(step, draws - first)
        drawn = random.integers(0, samples, (rows, samples)) + samples * np.arange(rows)[:, None]
        yield slice(first, first + rows), np.bincount(drawn.ravel(), minlength=rows * samples).reshape(rows, samples)
