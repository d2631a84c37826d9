"""The results of analyses that close layers: lesions, depth usage and pruning.

`layers` has the names of the layers in forward order; a layer's number is its index in it, counted from 0.
"""

from dataclasses import dataclass

import numpy as np

from verydeep.analysis._display import FROM_0, Displayed, list_layers, samples_of, split_name
from verydeep.analysis.activity._activity_results import Array
from verydeep.words import MEASURES, error_name, named_score, plural, score

_MOST_IMPORTANT = 5  # layers in a table
_NOISE = 2  # standard errors; a cost below may be chance
NUMBERING = ("numbering", "layers are counted from 0 here, as in Python, and from 1 in figures")


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
    def perplexity(self) -> float | None:
        """The perplexity of a language model, `exp(loss)`; None for other networks."""
        return float(np.exp(self.loss)) if self.measure == "token_accuracy" else None

    @property
    def text(self) -> str:
        """The accuracy or R2 alone, as it is shown: 97.50%."""
        return score(self.measure, self.accuracy)


@dataclass(frozen=True, repr=False)
class LesionStudy(Displayed):
    """The scores of a network with each layer closed in turn (Figure 4 of the paper); `lesion_study` computes it.

    Layers are counted from 0.

    Attributes:
        layers: The names of the layers, in forward order.
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
    def perplexity(self) -> Array | None:
        """The perplexity of a language model with each layer closed, `(layer,)`; None for other networks."""
        return np.exp(self.loss) if self.measure == "token_accuracy" else None

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
            f"{named_error(self.measure, self.baseline.error)}, and "
            f"{score(self.measure, self.error[worst])} with layer {worst} closed, the highest loss ({FROM_0})"
        )

    def _rows(self) -> list[tuple[str, str]]:
        closed = [
            (
                f"layer {layer} closed",
                f"{named_error(self.measure, self.error[layer])}, loss {self.loss[layer]:.4g}",
            )
            for layer in self.most_important[:_MOST_IMPORTANT]
        ]
        open_loss = ("loss, no layer closed", f"{self.baseline.loss:.4g}")
        return [*_measured(self), open_loss, *closed, NUMBERING]


@dataclass(frozen=True, repr=False)
class PairLesion(Displayed):
    """The scores of a network with every pair of layers closed; `pair_lesions` computes it.

    Layers are counted from 0.

    Attributes:
        layers: The names of the layers, in forward order.
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

    def _worst(self) -> tuple[str, float]:
        """Which layers are closed when the loss is highest, in words, and the error without them."""
        first, second = sorted(np.unravel_index(int(self.loss.argmax()), self.loss.shape))
        closed = f"layer {first} closed" if first == second else f"layers {first} and {second} closed"
        return closed, float(self.error[first, second])

    def _summary(self) -> str:
        closed, error = self._worst()
        return (
            f"{plural(len(self.layers), 'layer')}, {samples_of(self.samples, self.split)}; "
            f"{named_error(self.measure, self.baseline.error)}, and "
            f"{score(self.measure, error)} with {closed}, the highest loss ({FROM_0})"
        )

    def _rows(self) -> list[tuple[str, str]]:
        closed, error = self._worst()
        worst = (f"{error_name(self.measure)} with {closed}", score(self.measure, error))
        return [*_measured(self), worst, NUMBERING]


@dataclass(frozen=True, repr=False)
class PruneReport(Displayed):
    """A network before and after its idle layers were removed; `prune_report` measures it.

    Layers are counted from 0.

    Attributes:
        kept: The layers that were kept.
        removed: The layers that were removed.
        layers: The names of the layers, in forward order.
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
            ("layers", f"{len(self.layers)} → {len(self.kept)}"),
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
            NUMBERING,
        ]


def _measured(study: LesionStudy | PairLesion) -> list[tuple[str, str]]:
    return [
        ("layers", f"{len(study.layers)}"),
        ("samples", samples_of(study.samples, study.split)),
        (f"{error_name(study.measure)}, no layer closed", score(study.measure, study.baseline.error)),
    ]


def named_error(measure: str, error: float) -> str:
    """An error with its name."""
    return f"{error_name(measure)} {score(measure, error)}"


def tolerance_text(measure: str, tolerance: float) -> str:
    """A tolerance with the name of the score: 0.10% accuracy, or 0.0010 R²."""
    return f"{score(measure, tolerance)} {MEASURES.get(measure, measure)}"
