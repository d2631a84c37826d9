"""The results of analyses that close layers: lesions, depth usage and pruning.

`layers` has the names of the layers in forward order; a layer's number is its index in it, counted from 0.
"""

from dataclasses import dataclass

import numpy as np

from verydeep.analysis._activity_results import Array
from verydeep.analysis._display import FROM_0, Displayed, list_layers, samples_of, split_name
from verydeep.words import plural

_MOST_IMPORTANT = 5  # layers in a table
_NUMBERING = ("numbering", "layers are counted from 0 here, as in Python, and from 1 in figures")


@dataclass(frozen=True)
class Score:
    """Loss and error of a network on a set of samples.

    Attributes:
        loss: Mean cross-entropy.
        error: Fraction of wrong predictions.

    Example:
        >>> from verydeep.analysis import Score
        >>> Score(loss=0.125, error=0.25).accuracy
        0.75
    """

    loss: float
    error: float

    @property
    def accuracy(self) -> float:
        """Fraction of correct predictions."""
        return 1 - self.error


@dataclass(frozen=True, repr=False)
class LesionStudy(Displayed):
    """The scores of a network with each layer closed in turn (Figure 4 of the paper); `lesion_study` computes it.

    Layers are counted from 0.

    Attributes:
        layers: The names of the highway layers, in forward order.
        split: What the data is called.
        samples: The number of samples.
        baseline: The score with no layer closed.
        loss: The mean cross-entropy with each layer closed, `(layer,)`.
        error: The fraction of wrong predictions with each layer closed, `(layer,)`.

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

    _figure = "plot_lesions"

    def _summary(self) -> str:
        worst = int(self.loss.argmax())
        return (
            f"{plural(len(self.layers), 'layer')}, {samples_of(self.samples, self.split)}; "
            f"error {self.baseline.error:.2%}, and "
            f"{self.error[worst]:.2%} with layer {worst} closed, the highest loss ({FROM_0})"
        )

    def _rows(self) -> list[tuple[str, str]]:
        order = np.argsort(-self.loss, kind="stable")[:_MOST_IMPORTANT]
        closed = [
            (f"layer {layer} closed", f"error {self.error[layer]:.2%}, loss {self.loss[layer]:.4g}") for layer in order
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
        loss: The mean cross-entropy with two layers closed, `(layer, layer)`; the diagonal closes one layer.
        error: The fraction of wrong predictions, likewise.

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

    def _worst(self) -> tuple[int, int]:
        first, second = sorted(np.unravel_index(int(self.loss.argmax()), self.loss.shape))
        return int(first), int(second)

    def _summary(self) -> str:
        first, second = self._worst()
        return (
            f"{plural(len(self.layers), 'layer')}, {samples_of(self.samples, self.split)}; "
            f"error {self.baseline.error:.2%}, and "
            f"{self.error[first, second]:.2%} with layers {first} and {second} closed, the highest loss ({FROM_0})"
        )

    def _rows(self) -> list[tuple[str, str]]:
        first, second = self._worst()
        worst = (f"error with layers {first} and {second} closed", f"{self.error[first, second]:.2%}")
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
        loss: The mean cross-entropy after closing 0, 1, ... layers of `order`, `(closed + 1,)`.
        error: The fraction of wrong predictions, likewise.

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

    _figure = "plot_depth_usage"

    def _summary(self) -> str:
        order = ", ".join(map(str, self.order[:8])) + (", ..." if len(self.order) > 8 else "")
        return (
            f"{plural(len(self.layers), 'layer')}, {samples_of(self.samples, self.split)}; "
            f"error {self.error[0]:.2%}, and "
            f"{self.error[-1]:.2%} with {plural(len(self.order), 'layer')} closed in the order {order} ({FROM_0})"
        )

    def _rows(self) -> list[tuple[str, str]]:
        steps = dict.fromkeys(
            (0, len(self.order) // 4, len(self.order) // 2, 3 * len(self.order) // 4, len(self.order))
        )
        rows = [(f"error with {plural(closed, 'layer')} closed", f"{self.error[closed]:.2%}") for closed in steps]
        return [("highway layers", f"{len(self.layers)}"), ("samples", samples_of(self.samples, self.split)), *rows]


@dataclass(frozen=True, repr=False)
class DepthUsage(Displayed):
    """How many layers a network uses: the fewest on the greedy curve with an accuracy within the tolerance.

    `depth_usage` computes it. Layers are counted from 0.

    Attributes:
        greedy: The greedy curve.
        tolerance: The largest loss of accuracy allowed, as a fraction: 0.001 is 0.1 %.
        kept: The layers that are used.
        idle: The other layers, in the order in which they were closed.

    Example:
        >>> from verydeep.analysis import depth_usage, greedy_lesions
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> usage = depth_usage(greedy_lesions(model, data.test), tolerance=0.01)
        >>> len(usage.kept) + len(usage.idle)
        3
    """

    greedy: GreedyLesion
    tolerance: float
    kept: tuple[int, ...]
    idle: tuple[int, ...]

    _figure = "plot_depth_usage"

    def _summary(self) -> str:
        return (
            f"{len(self.kept)} of {len(self.greedy.layers)} layers used within {self.tolerance:.2%} accuracy on "
            f"{samples_of(self.greedy.samples, self.greedy.split)}; idle: {list_layers(self.idle)} ({FROM_0})"
        )

    def _rows(self) -> list[tuple[str, str]]:
        accuracy = 1 - self.greedy.error
        return [
            ("layers used", f"{len(self.kept)} of {len(self.greedy.layers)}"),
            ("accuracy with all layers", f"{accuracy[0]:.2%}"),
            ("accuracy without the idle layers", f"{accuracy[len(self.idle)]:.2%}"),
            ("largest loss of accuracy allowed", f"{self.tolerance:.2%}"),
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
        tolerance: The largest loss of accuracy allowed, as a fraction.
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

    def _summary(self) -> str:
        before, after = (score.accuracy for score in self.test or self.chosen)
        where = "test set" if self.test else split_name(self.split) or "data"
        return (
            f"{len(self.kept)} of {len(self.layers)} layers kept; accuracy {before:.2%} -> {after:.2%} on the {where}, "
            f"parameters {self.parameters[0]:,} -> {self.parameters[1]:,}; "
            f"removed: {list_layers(self.removed)} ({FROM_0})"
        )

    def _rows(self) -> list[tuple[str, str]]:
        before, after = self.chosen
        rows = [
            ("highway layers", f"{len(self.layers)} → {len(self.kept)}"),
            (f"accuracy, {split_name(self.split) or 'data'}", f"{before.accuracy:.2%} → {after.accuracy:.2%}"),
        ]
        if self.test:
            rows.append(("accuracy, test set", f"{self.test[0].accuracy:.2%} → {self.test[1].accuracy:.2%}"))
        if self.tuned:
            rows.append(("accuracy, test set, after fine-tuning", f"{self.tuned.accuracy:.2%}"))
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
        ("error, no layer closed", f"{study.baseline.error:.2%}"),
    ]
