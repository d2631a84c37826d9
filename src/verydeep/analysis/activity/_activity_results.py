"""The results of analyses that watch the network as it is: gates, routing and signals.

`PerLayer` tuples hold one array per highway layer, because the stages of a convolutional network differ in width.
`layers` has the names of the layers in forward order; a layer's number is its index in it, counted from 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verydeep.analysis._display import Displayed
from verydeep.words import plural

Array = NDArray[np.float64]
PerLayer = tuple[Array, ...]
OPEN = 0.5  # a transform gate above this value is open
SHUT = 0.05  # a transform gate below this value is nearly closed, and otherwise active
NOISE = 3  # a difference within this many standard errors may be noise


@dataclass(frozen=True, repr=False)
class GateStatistics(Displayed):
    """What the transform gates do (Figure 2 of the paper); `gate_statistics` computes it.

    Layers are counted from 0. Statistics of feature maps are over positions, too.

    Attributes:
        layers: The names of the highway layers, in forward order.
        samples: The number of samples.
        bias: Per layer, the gate biases, `(block,)`; NaN if the gate is a module without one.
        initial_bias: Per layer, their values before training, `(block,)`; NaN if unknown.
        mean: Per layer, the mean gate outputs over all samples, `(block,)`.
        variance: Per layer, their variances, `(block,)`.
        open_share: Per layer, the fraction of samples whose gate is above 0.5, `(block,)`.
        shut_share: Per layer, the fraction of samples whose gate is below 0.05, `(block,)`.
        sample: The index of the sample that the next two attributes show.
        sample_gates: Per layer, the gates of that sample, `(block,)`, or `(block, height, width)` for feature maps.
        sample_outputs: The block outputs of that sample, shaped like `sample_gates`.
        change: The root mean square over all samples of block output minus input, `(layer,)`.

    Example:
        >>> from verydeep.analysis import gate_statistics
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> gates = gate_statistics(model, data.test)
        >>> len(gates.layers), gates.mean[0].shape  # the mean gates of the first highway layer
        (3, (16,))
    """

    layers: tuple[str, ...]
    samples: int
    bias: PerLayer
    initial_bias: PerLayer
    mean: PerLayer
    variance: PerLayer
    open_share: PerLayer
    shut_share: PerLayer
    sample: int
    sample_gates: PerLayer
    sample_outputs: PerLayer
    change: Array

    _figure = "plot_gates"

    def _summary(self) -> str:
        gates = sum(map(len, self.mean))
        mean, opened = _mean(self.mean), _mean(self.open_share)
        return (
            f"{plural(len(self.layers), 'layer')}, {plural(gates, 'gate')}, {plural(self.samples, 'sample')}; "
            f"mean gate {mean:.3f}, "
            f"{opened:.1%} open (above {OPEN})"
        )

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("highway layers", f"{len(self.layers):,}"),
            ("gates", f"{sum(map(len, self.mean)):,}"),
            ("samples", f"{self.samples:,}"),
            ("mean gate output", f"{_mean(self.mean):.3f}"),
            (f"open (above {OPEN})", f"{_mean(self.open_share):.1%}"),
            (f"nearly closed (below {SHUT})", f"{_mean(self.shut_share):.1%}"),
        ]


@dataclass(frozen=True, repr=False)
class ClassRouting(Displayed):
    """How gate activity differs between classes (Figure 3 of the paper); `class_routing` computes it.

    Layers are counted from 0.

    Attributes:
        layers: The names of the highway layers, in forward order.
        classes: The names of the classes; of the labels of a multi-label task, of ranges of a regression's target.
        counts: Samples per class, `(class,)`.
        mean: Per layer, the mean gates over all samples, `(block,)`.
        difference: Per layer, the mean over the class minus the mean over all samples, `(class, block)`.
        standard_error: The standard error of each difference, `(class, block)`; NaN for a class of one sample.
        distance: Root mean square difference between the mean gates of two classes, over all blocks, `(class, class)`.
        linkage: The average-linkage clustering of `distance` in SciPy's format, `(class - 1, 4)`.
        probe_accuracy: Cross-validated accuracy of a linear classifier that sees only the gates; of labels, the mean of
            one classifier per label.
        probe_chance: The accuracy of always predicting the most frequent class.
        probe_samples: The number of samples of the linear classifier.
        grouped_by: What samples are grouped by: `class`, `label`, or `range` of a regression's target.

    Example:
        >>> from verydeep.analysis import class_routing
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> routing = class_routing(model, data.test, data.classes)
        >>> routing.difference[0].shape, routing.distance.shape
        ((10, 16), (10, 10))
    """

    layers: tuple[str, ...]
    classes: tuple[str, ...]
    counts: NDArray[np.int64]
    mean: PerLayer
    difference: PerLayer
    standard_error: PerLayer
    distance: Array
    linkage: Array
    probe_accuracy: float
    probe_chance: float
    probe_samples: int
    grouped_by: str = "class"

    _figure = "plot_routing"

    @property
    def groups(self) -> str:
        """What samples are grouped by, in the plural: classes, labels or ranges."""
        return {"class": "classes"}.get(self.grouped_by, f"{self.grouped_by}s")

    @property
    def _guessed(self) -> str:
        """What a blind guess names."""
        return "answer" if self.grouped_by == "label" else self.grouped_by

    @property
    def significant(self) -> float:
        """Fraction of significant differences among those whose standard error is known."""
        pairs = zip(self.difference, self.standard_error, strict=True)
        known = np.concatenate([is_significant(d, e)[np.isfinite(e)] for d, e in pairs])
        return float(known.mean()) if known.size else 0.0

    def _summary(self) -> str:
        return (
            f"{len(self.classes)} {self.groups}, {plural(len(self.layers), 'layer')}, "
            f"{plural(self.counts.sum(), 'sample')}; from the gates "
            f"alone, a linear classifier reaches {self.probe_accuracy:.1%} accuracy (most frequent {self._guessed}: "
            f"{self.probe_chance:.1%})"
        )

    def _rows(self) -> list[tuple[str, str]]:
        return [
            (self.groups, f"{len(self.classes)}"),
            ("highway layers", f"{len(self.layers):,}"),
            ("samples", f"{self.counts.sum():,}"),
            (f"differences beyond {NOISE} standard errors", f"{self.significant:.0%}"),
            ("accuracy of a linear classifier on the gates alone", f"{self.probe_accuracy:.1%}"),
            (f"accuracy of the most frequent {self._guessed}", f"{self.probe_chance:.1%}"),
        ]


@dataclass(frozen=True, repr=False)
class SignalFlow(Displayed):
    """How signals travel forward and gradients backward, at one point of training; `signal_flow` computes it.

    Layers are counted from 0.

    Attributes:
        name: The name of the network and the moment, for example "highway, trained".
        layers: The names of the layers, in forward order.
        activation: The root mean square of each layer's output, `(layer,)`.
        gradient: The root mean square of the gradient of the loss with respect to each layer's output, `(layer,)`.

    Example:
        >>> from verydeep.analysis import signal_flow
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> flow = signal_flow(model, data.test, "highway, untrained")
        >>> flow.activation.shape, flow.gradient.shape
        ((3,), (3,))
    """

    name: str
    layers: tuple[str, ...]
    activation: Array
    gradient: Array

    _figure = "plot_signal_flow"

    def _summary(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        return (
            f"{name}{plural(len(self.layers), 'layer')}; "
            f"from the first to the last layer, activations {_ends(self.activation)}, "
            f"gradients {_ends(self.gradient)}"
        )

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("network", self.name or "unnamed"),
            ("layers", f"{len(self.layers)}"),
            ("activations, first to last layer", _ends(self.activation)),
            ("gradients, first to last layer", _ends(self.gradient)),
        ]


def is_significant(difference: Array, error: Array) -> NDArray[np.bool_]:
    """Where a difference is more than `NOISE` standard errors."""
    return np.asarray(np.abs(difference) > NOISE * error)


def _mean(values: PerLayer) -> float:
    return float(np.concatenate([value.ravel() for value in values]).mean())


def _ends(values: Array) -> str:
    return f"{values[0]:.3g} to {values[-1]:.3g}"
