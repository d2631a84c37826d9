"""The result of closing or swapping random sets of layers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verydeep.analysis._display import Displayed, samples_of
from verydeep.analysis.activity._activity_results import Array
from verydeep.analysis.lesions._lesion_results import Score, named_error
from verydeep.words import plural, score


@dataclass(frozen=True, repr=False)
class RandomChanges(Displayed):
    """The scores of a network after random changes of its layers; `random_lesions` and `reorder_study` compute it.

    Layers are counted from 0.

    Attributes:
        layers: The names of the layers, in forward order.
        split: What the data is called.
        samples: The number of samples.
        baseline: The score of the unchanged network.
        change: What was done to layers: `closed` or `swapped`.
        counts: How many layers were changed, `(count,)`.
        loss: The mean loss after each change, `(count, draw)`.
        error: The fraction of wrong predictions, or 1 - R2, likewise.
        order: Which layer was applied in the place of each, -1 if it was closed, `(count, draw, layer)`.

    Example:
        >>> from verydeep.analysis import random_lesions
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=5, width=16, input_shape=(1, 8, 8))
        >>> found = random_lesions(model, data.test, [1, 2], draws=3)
        >>> found.error.shape, found.order.shape
        ((2, 3), (2, 3, 4))
        >>> (found.order < 0).sum(-1).tolist()
        [[1, 1, 1], [2, 2, 2]]
    """

    layers: tuple[str, ...]
    split: str
    samples: int
    baseline: Score
    change: str
    counts: NDArray[np.int64]
    loss: Array
    error: Array
    order: NDArray[np.int64]

    _figure = "plot_random_changes"

    @property
    def measure(self) -> str:
        """What 1 minus the error is called: `accuracy`, or `r2` of a regression."""
        return self.baseline.measure

    def _summary(self) -> str:
        most, last = int(self.counts[-1]), score(self.measure, float(self.error[-1].mean()))
        return (
            f"{plural(len(self.layers), 'layer')}, {samples_of(self.samples, self.split)}; "
            f"{named_error(self.measure, self.baseline.error)}, and {last} "
            f"with {most} random layers {self.change} (mean of {plural(self.error.shape[1], 'draw')})"
        )

    def _rows(self) -> list[tuple[str, str]]:
        rows = [
            (
                f"{plural(int(count), 'layer')} {self.change}",
                f"{named_error(self.measure, float(error.mean()))}, loss {loss.mean():.4g}",
            )
            for count, error, loss in zip(self.counts, self.error, self.loss, strict=True)
        ]
        return [("layers", str(len(self.layers))), ("samples", samples_of(self.samples, self.split)), *rows]
