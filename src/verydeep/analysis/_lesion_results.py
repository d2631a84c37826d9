"""The results of analyses that close layers: lesions, depth usage and pruning.

`layers` has the names of the layers in forward order; a layer's number is its index in it, counted from 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verydeep.analysis._activity_results import Array
from verydeep.analysis._display import FROM_0, Displayed, list_layers, samples_of, split_name
from verydeep.analysis._paired import most_closed
from verydeep.words import MEASURES, error_name, named_score, plural, score

_MOST_IMPORTANT = 5  # layers in a table
_NOISE = 2  # standard errors; a cost below may be chance
_ENDS = (2.5, 97.5)  # percentiles of a 95 % interval
_NUMBERING = ("numbering", "layers are counted from 0 here, as in Python, and from 1 in figures")


@dataclass(frozen=True)
class Score:
    """Loss and error of a network on a set of samples.

    Attributes:
        loss: Mean loss: the cross-entropy, or the error of a regression.
        error: Fraction of wrong predictions; of a regression, the fraction of the variance that is not explained.
        measure: What 1 minus the error is called: `accuracy`, or `r2` of a regression.

    Example:
        >>> from verydeep.analysis import Score
        >>> Score(loss=0.125, error=0.25).accuracy
        0.75
    """

    loss: float
    error: float
    measure: str = "accuracy"

    @property
    def accuracy(self) -> float:
        """Fraction of correct predictions; of a regression, R2."""
        return 1 - self.error

    @property
    def text(self) -> str:
        """The accuracy or R2 alone, as it is shown: 97.50%."""
        return score(self.measure, self.accuracy)


@dataclass(frozen=True, repr=False)
class LesionStudy(Displayed):
    """The scores of a network with each layer closed in turn (Figure 4 of the paper); `lesion_study` computes it.

    Layers are counted from 0.

    Attributes:
        layers: The names of the highway layers, in forward order.
        split: What the data is called.
        samples: The number of samples.
        baseline: The score with no layer closed.
        loss: The mean loss with each layer closed, `(layer,)`.
        error: The fraction of wrong predictions, or 1 - R2, with each layer closed, `(layer,)`.
        standard_error: The standard error of the rise of `error` over the baseline, paired over samples, `(layer,)`;
            None in results of earlier versions.
        loss_standard_error: The standard error of the rise of `loss`, likewise.

    Example:
        >>> from verydeep.analysis import lesion_study
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> lesions = lesion_study(model, data.test)
        >>> cost = lesions.loss - lesions.baseline.loss  # of closing each layer
        >>> cost.shape
        (3,)
    """

    layers: tuple[str, ...]
    split: str
    samples: int
    baseline: Score
    loss: Array
    error: Array
    standard_error: Array | None = None
    loss_standard_error: Array | None = None

    _figure = "plot_lesions"

    @property
    def measure(self) -> str:
        """What 1 minus the error is called: `accuracy`, or `r2` of a regression."""
        return self.baseline.measure

    @property
    def most_important(self) -> tuple[int, ...]:
        """The layers whose cost is more than noise, ordered by loss, most important first.

        Closing such a layer raises the loss, or the error, by more than two standard errors.
        """
        matters = np.zeros(len(self.layers), bool)
        for values, open_value, noise in (
            (self.loss, self.baseline.loss, self.loss_standard_error),
            (self.error, self.baseline.error, self.standard_error),
        ):
            matters |= ~(values - open_value <= (0 if noise is None else _NOISE * np.nan_to_num(noise)))
        return tuple(int(layer) for layer in np.argsort(-self.loss, kind="stable") if matters[layer])

    def _summary(self) -> str:
        worst = int(self.loss.argmax())
        return (
            f"{plural(len(self.layers), 'layer')}, {samples_of(self.samples, self.split)}; "
            f"{_named_error(self.measure, self.baseline.error)}, and "
            f"{score(self.measure, self.error[worst])} with layer {worst} closed, the highest loss ({FROM_0})"
        )

    def _rows(self) -> list[tuple[str, str]]:
        closed = [
            (
                f"layer {layer} closed",
                f"{_named_error(self.measure, self.error[layer])}, loss {self.loss[layer]:.4g}",
            )
            for layer in self.most_important[:_MOST_IMPORTANT]
        ]
        open_loss = ("loss, no layer closed", f"{self.baseline.loss:.4g}")
        return [*_measured(self), open_loss, *closed, _NUMBERING]


@dataclass(frozen=True, repr=False)
class PairLesion(Displayed):
    """The scores of a network with every pair of layers closed; `pair_lesions` computes it.

    Layers are counted from 0.

    Attributes:
        layers: The names of the highway layers, in forward order.
        split: What the data is called.
        samples: The number of samples.
        baseline: The score with no layer closed.
        loss: The mean loss with two layers closed, `(layer, layer)`; the diagonal closes one layer.
        error: The fraction of wrong predictions, or 1 - R2, likewise.

    Example:
        >>> from verydeep.analysis import pair_lesions
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> pairs = pair_lesions(model, data.test)
        >>> pairs.error.shape
        (3, 3)
    """

    layers: tuple[str, ...]
    split: str
    samples: int
    baseline: Score
    loss: Array
    error: Array

    _figure = "plot_pair_lesions"

    @property
    def measure(self) -> str:
        """What 1 minus the error is called: `accuracy`, or `r2` of a regression."""
        return self.baseline.measure

    def _worst(self) -> tuple[int, int]:
        first, second = sorted(np.unravel_index(int(self.loss.argmax()), self.loss.shape))
        return int(first), int(second)

    def _summary(self) -> str:
        first, second = self._worst()
        return (
            f"{plural(len(self.layers), 'layer')}, {samples_of(self.samples, self.split)}; "
            f"{_named_error(self.measure, self.baseline.error)}, and "
            f"{score(self.measure, self.error[first, second])} with layers {first} and {second} closed, "
            f"the highest loss ({FROM_0})"
        )

    def _rows(self) -> list[tuple[str, str]]:
        first, second = self._worst()
        name = f"{error_name(self.measure)} with layers {first} and {second} closed"
        worst = (name, score(self.measure, self.error[first, second]))
        return [*_measured(self), worst, _NUMBERING]


@dataclass(frozen=True, repr=False)
class GreedyLesion(Displayed):
    """Layers closed one after the other, each time the one that costs the least loss; `greedy_lesions` computes it.

    Layers are counted from 0.

    Attributes:
        layers: The names of the highway layers, in forward order.
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
            f"{_named_error(self.measure, self.error[0])}, and "
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
        return [("highway layers", f"{len(self.layers)}"), ("samples", samples_of(self.samples, self.split)), *rows]


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
            _NUMBERING,
        ]


@dataclass(frozen=True, repr=False)
class PruneReport(Displayed):
    """A network before and after its idle layers were removed; `prune_report` measures it.

    Layers are counted from 0.

    Attributes:
        kept: The layers that were kept.
        removed: The layers that were removed.
        layers: The names of the highway layers, in forward order.
        split: What the data is called on which the layers were selected.
        tolerance: The largest loss of accuracy allowed, as a fraction; of a regression, of R2.
        chosen: The scores before and after, on `split`.
        test: The scores before and after, on the test set.
        tuned: The test score after fine-tuning.
        parameters: The number of parameters before and after.
        multiply_adds: Multiply-adds per sample before and after.
        latency: The median seconds per batch before and after.
        latency_batch: The samples per batch of the latency.

    Example:
        >>> from verydeep.analysis import depth_usage, greedy_lesions, prune, prune_report
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> usage = depth_usage(greedy_lesions(model, data.test), tolerance=0.9)
        >>> report = prune_report(model, prune(model, usage), usage, data.test)
        >>> report.parameters[1] < report.parameters[0]
        True
    """

    kept: tuple[int, ...]
    removed: tuple[int, ...]
    layers: tuple[str, ...]
    split: str
    tolerance: float
    chosen: tuple[Score, Score]
    test: tuple[Score, Score] | None
    tuned: Score | None
    parameters: tuple[int, int]
    multiply_adds: tuple[int, int]
    latency: tuple[float, float]
    latency_batch: int

    _figure = "plot_prune"

    @property
    def measure(self) -> str:
        """What 1 minus the error is called: `accuracy`, or `r2` of a regression."""
        return self.chosen[0].measure

    def _summary(self) -> str:
        before, after = self.test or self.chosen
        where = "test set" if self.test else split_name(self.split) or "data"
        return (
            f"{len(self.kept)} of {len(self.layers)} layers kept; "
            f"{named_score(self.measure, before.accuracy)} -> {after.text} on the {where}, "
            f"parameters {self.parameters[0]:,} -> {self.parameters[1]:,}; "
            f"removed: {list_layers(self.removed)} ({FROM_0})"
        )

    def _rows(self) -> list[tuple[str, str]]:
        (before, after), name = self.chosen, MEASURES.get(self.measure, self.measure)
        rows = [
            ("highway layers", f"{len(self.layers)} → {len(self.kept)}"),
            (f"{name}, {split_name(self.split) or 'data'}", f"{before.text} → {after.text}"),
        ]
        if self.test:
            rows.append((f"{name}, test set", f"{self.test[0].text} → {self.test[1].text}"))
        if self.tuned:
            rows.append((f"{name}, test set, after fine-tuning", self.tuned.text))
        (wide, narrow), (work, less), (slow, fast) = self.parameters, self.multiply_adds, self.latency
        return [
            *rows,
            ("parameters", f"{wide:,} → {narrow:,}"),
            ("multiply-adds per sample", f"{work:,} → {less:,}"),
            (f"milliseconds for {self.latency_batch} samples", f"{1e3 * slow:.2f} → {1e3 * fast:.2f}"),
            ("removed layers", list_layers(self.removed)),
            _NUMBERING,
        ]


def _measured(study: LesionStudy | PairLesion) -> list[tuple[str, str]]:
    return [
        ("highway layers", f"{len(study.layers)}"),
        ("samples", samples_of(study.samples, study.split)),
        (f"{error_name(study.measure)}, no layer closed", score(study.measure, study.baseline.error)),
    ]


def _named_error(measure: str, error: float) -> str:
    return f"{error_name(measure)} {score(measure, error)}"


def _allowed(greedy: GreedyLesion, tolerance: float) -> Array:
    """The tolerance, but nowhere less than one standard error."""
    noise = np.zeros_like(greedy.error) if greedy.standard_error is None else np.nan_to_num(greedy.standard_error)
    return np.maximum(noise, tolerance)


def tolerance_text(measure: str, tolerance: float) -> str:
    """A tolerance with the name of the score: 0.10% accuracy, or 0.0010 R²."""
    return f"{score(measure, tolerance)} {MEASURES.get(measure, measure)}"
