"""The results of closing layers one after the other: the greedy curve, and how many layers are used.

`layers` has the names of the layers in forward order; a layer's number is its index in it, counted from 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verydeep.analysis._display import FROM_0, Displayed, list_layers, samples_of
from verydeep.analysis.activity._activity_results import Array
from verydeep.analysis.lesions._lesion_results import NUMBERING, named_error, tolerance_text
from verydeep.analysis.lesions._paired import most_closed
from verydeep.words import MEASURES, error_name, plural, score

_ENDS = (2.5, 97.5)  # percentiles of a 95 % interval


@dataclass(frozen=True, repr=False)
class GreedyLesion(Displayed):
    """Layers closed one after the other, each time the one that costs the least loss; `greedy_lesions` computes it.

    Layers are counted from 0.

    Attributes:
        layers: The names of the layers, in forward order.
        split: What the data is called.
        samples: The number of samples.
        order: The layers in the order in which they were closed.
        loss: The mean loss after closing 0, 1, ... layers of `order`, `(closed + 1,)`.
        error: The fraction of wrong predictions, or 1 - R2, likewise.
        measure: What 1 minus the error is called: `accuracy`, or `r2` of a regression.
        standard_error: The standard error of the rise of the error over that of the full network, paired over samples,
            `(closed + 1,)`; None in results of earlier versions.
        draws: The rise of the error in random draws of the samples (the bootstrap), `(draw, closed + 1)`, likewise.
        training: The same order measured on the training samples, as in the paper; None if `split` is that data.
        selected_on: What the data is called on which the order was selected.
        selected_samples: The number of samples on which it was selected; 0 in results of earlier versions.
        key: A digest of the weights, samples and options, by which commands recognise a result that they can reuse.

    Example:
        >>> from verydeep.analysis import greedy_lesions
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> greedy = greedy_lesions(model, data.test)
        >>> sorted(greedy.order), greedy.error.shape
        ([0, 1, 2], (4,))
    """

    layers: tuple[str, ...]
    split: str
    samples: int
    order: tuple[int, ...]
    loss: Array
    error: Array
    measure: str = "accuracy"
    standard_error: Array | None = None
    draws: NDArray[np.float32] | None = None
    training: "GreedyLesion | None" = None
    selected_on: str = ""
    selected_samples: int = 0
    key: str = ""

    _figure = "plot_depth_usage"

    @property
    def band(self) -> tuple[Array, Array] | None:
        """The 95 % interval of the error at each point, as it differs from the full network's; None if not known."""
        if self.draws is None:
            return None
        low, high = np.percentile(self.draws.astype(float), _ENDS, axis=0)
        return self.error[0] + low, self.error[0] + high

    def _summary(self) -> str:
        order = ", ".join(map(str, self.order[:8])) + (", ..." if len(self.order) > 8 else "")
        return (
            f"{plural(len(self.layers), 'layer')}, {samples_of(self.samples, self.split)}; "
            f"{named_error(self.measure, self.error[0])}, and "
            f"{score(self.measure, self.error[-1])} with {plural(len(self.order), 'layer')} closed "
            f"in the order {order} ({FROM_0})"
        )

    def _rows(self) -> list[tuple[str, str]]:
        steps = dict.fromkeys(
            (0, len(self.order) // 4, len(self.order) // 2, 3 * len(self.order) // 4, len(self.order))
        )
        rows = [
            (
                f"{error_name(self.measure)} with {plural(closed, 'layer')} closed",
                score(self.measure, self.error[closed]),
            )
            for closed in steps
        ]
        return [("layers", f"{len(self.layers)}"), ("samples", samples_of(self.samples, self.split)), *rows]


@dataclass(frozen=True, repr=False)
class DepthUsage(Displayed):
    """How many layers a network uses: the fewest on the greedy curve whose error is within what is allowed.

    A rise of the error is allowed up to the tolerance, or up to one standard error if that is larger: a difference
    below is no more than noise. `depth_usage` computes it. Layers are counted from 0.

    Attributes:
        greedy: The greedy curve.
        tolerance: The largest loss of accuracy allowed, as a fraction: 0.001 is 0.1 %; of a regression, of R2.
        kept: The layers that are used.
        idle: The other layers, in the order in which they were closed.
        interval: The 95 % interval of the number of layers used: the 2.5th and 97.5th percentiles of the same rule over
            random draws of the samples, widened to include the number itself; None in results of earlier versions.

    Example:
        >>> from verydeep.analysis import depth_usage, greedy_lesions
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> usage = depth_usage(greedy_lesions(model, data.test, "test", train=data.train), tolerance=0.01)
        >>> len(usage.kept) + len(usage.idle)
        3
        >>> low, high = usage.interval
        >>> low <= len(usage.kept) <= high
        True
    """

    greedy: GreedyLesion
    tolerance: float
    kept: tuple[int, ...]
    idle: tuple[int, ...]
    interval: tuple[int, int] | None = None

    _figure = "plot_depth_usage"

    @classmethod
    def of(cls, greedy: GreedyLesion, tolerance: float) -> "DepthUsage":
        """Apply the rule to a curve."""
        allowed, total = _allowed(greedy, tolerance), len(greedy.layers)
        closed = int(most_closed(greedy.error - greedy.error[0], allowed))
        interval = None
        if greedy.draws is not None:
            kept = total - most_closed(greedy.draws, allowed)
            low, high = (int(end) for end in np.percentile(kept, _ENDS, method="inverted_cdf"))
            interval = min(low, total - closed), max(high, total - closed)
        idle = greedy.order[:closed]
        return cls(greedy, tolerance, tuple(sorted(set(range(total)) - set(idle))), idle, interval)

    @property
    def split(self) -> str:
        """What the data is called on which the layers used were counted."""
        return self.greedy.split

    @property
    def allowed(self) -> Array:
        """The largest rise of the error allowed after closing 0, 1, ... layers, `(closed + 1,)`."""
        return _allowed(self.greedy, self.tolerance)

    @property
    def within(self) -> float:
        """The rise of the error that was allowed for the layers kept: the tolerance, or one standard error."""
        return float(self.allowed[len(self.idle)])

    @property
    def training(self) -> "DepthUsage | None":
        """The same rule on the training samples, as in the paper; None if `split` is that data."""
        return None if self.greedy.training is None else DepthUsage.of(self.greedy.training, self.tolerance)

    @property
    def count_text(self) -> str:
        """The number with its interval: 8 of 19 layers (95 % interval 6 to 11)."""
        ends = "" if self.interval is None else f" (95 % interval {self.interval[0]} to {self.interval[1]})"
        return f"{len(self.kept)} of {plural(len(self.greedy.layers), 'layer')}{ends}"

    @property
    def within_text(self) -> str:
        """What is allowed, in words: 0.10% accuracy, or 0.42% accuracy (one standard error)."""
        noise = " (one standard error)" if self.within > self.tolerance else ""
        return tolerance_text(self.greedy.measure, self.within) + noise

    def _summary(self) -> str:
        return (
            f"{self.count_text} used within {self.within_text} on "
            f"{samples_of(self.greedy.samples, self.greedy.split)}; idle: {list_layers(self.idle)} ({FROM_0})"
        )

    def _rows(self) -> list[tuple[str, str]]:
        accuracy, measure, training = 1 - self.greedy.error, self.greedy.measure, self.training
        name = MEASURES.get(measure, measure)
        noise = "" if self.within == self.tolerance else ", one standard error"
        return [
            ("layers used", self.count_text),
            *([] if training is None else [("on the training samples, as in the paper", training.count_text)]),
            (f"{name} with all layers", score(measure, accuracy[0])),
            (f"{name} without the idle layers", score(measure, accuracy[len(self.idle)])),
            (f"largest loss of {name} allowed", score(measure, self.within) + noise),
            ("samples", samples_of(self.greedy.samples, self.greedy.split)),
            ("layers kept", list_layers(self.kept)),
            ("idle layers", list_layers(self.idle)),
            NUMBERING,
        ]


def _allowed(greedy: GreedyLesion, tolerance: float) -> Array:
    """The tolerance, but nowhere less than one standard error."""
    noise = np.zeros_like(greedy.error) if greedy.standard_error is None else np.nan_to_num(greedy.standard_error)
    return np.maximum(noise, tolerance)
