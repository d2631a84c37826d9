"""The results of the analyses: small dataclasses that are computed once, then saved, drawn and shown in reports.

`PerLayer` tuples hold one array per highway layer, because the stages of a convolutional network differ in width.
`layers` has the names of the layers in the order in which data reaches them; a layer's number is its index in it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
PerLayer = tuple[Array, ...]

OPEN = 0.5  # a transform gate above this value is open
SHUT = 0.05  # a transform gate below this value is nearly shut, and otherwise active
NOISE = 3  # a difference within this many standard errors may be noise


@dataclass(frozen=True)
class Score:
    """Loss and error of a network on a set of samples."""

    loss: float  # mean cross-entropy
    error: float  # share of wrong answers

    @property
    def accuracy(self) -> float:
        """Share of correct answers."""
        return 1 - self.error


@dataclass(frozen=True)
class GateStatistics:
    """What the transform gates do (Figure 2). Statistics of feature maps are over positions too."""

    layers: tuple[str, ...]
    samples: int
    bias: PerLayer  # (block,); NaN if the gate is a module without one
    initial_bias: PerLayer  # (block,); its value before training; NaN if unknown
    mean: PerLayer  # (block,) gate output over all samples
    variance: PerLayer  # (block,)
    open_share: PerLayer  # (block,) share of samples whose gate is above 0.5
    shut_share: PerLayer  # (block,) share of samples whose gate is below 0.05
    sample: int  # the index of the sample that the next two fields show
    sample_gates: PerLayer  # (block,), or (block, height, width) for feature maps
    sample_outputs: PerLayer  # the block outputs, shaped like sample_gates
    change: Array  # (layer,) root mean square over all samples of block output minus input


@dataclass(frozen=True)
class ClassRouting:
    """How gate activity differs between classes (Figure 3)."""

    layers: tuple[str, ...]
    classes: tuple[str, ...]
    counts: NDArray[np.int64]  # (class,) samples
    mean: PerLayer  # (block,) over all samples
    difference: PerLayer  # (class, block): mean over the class minus mean over all
    standard_error: PerLayer  # (class, block): of the difference; NaN for a class of one sample
    distance: Array  # (class, class): root mean square difference between the classes' mean gates, over all blocks
    linkage: Array  # (class - 1, 4): average-linkage clustering of `distance`, in SciPy's format
    probe_accuracy: float  # cross-validated accuracy of a linear classifier on gates alone
    probe_chance: float  # accuracy of always naming the most frequent class
    probe_samples: int

    @property
    def significant(self) -> float:
        """Share of significant differences among those whose standard error is known."""
        pairs = zip(self.difference, self.standard_error, strict=True)
        known = np.concatenate([is_significant(d, e)[np.isfinite(e)] for d, e in pairs])
        return float(known.mean()) if known.size else 0.0


def is_significant(difference: Array, error: Array) -> NDArray[np.bool_]:
    """Where a difference is more than `NOISE` standard errors."""
    return np.asarray(np.abs(difference) > NOISE * error)


@dataclass(frozen=True)
class LesionStudy:
    """The scores of a network with each layer closed in turn (Figure 4)."""

    layers: tuple[str, ...]
    split: str
    samples: int
    baseline: Score  # nothing closed
    loss: Array  # (layer,)
    error: Array  # (layer,)


@dataclass(frozen=True)
class PairLesion:
    """The scores of a network with every pair of layers closed; the diagonal closes one layer."""

    layers: tuple[str, ...]
    split: str
    samples: int
    baseline: Score
    loss: Array  # (layer, layer)
    error: Array  # (layer, layer)


@dataclass(frozen=True)
class GreedyLesion:
    """Layers closed one after the other, each time the one that costs the least loss."""

    layers: tuple[str, ...]
    split: str
    samples: int
    order: tuple[int, ...]  # layers in the order of closing
    loss: Array  # (closed + 1,): after closing 0, 1, ... layers of `order`
    error: Array  # (closed + 1,)


@dataclass(frozen=True)
class DepthUsage:
    """How many layers a network uses: the fewest on the greedy curve with an accuracy within the tolerance."""

    greedy: GreedyLesion
    tolerance: float  # allowed loss of accuracy, as a share: 0.001 is 0.1 %
    kept: tuple[int, ...]
    idle: tuple[int, ...]  # in the order of closing


@dataclass(frozen=True)
class SignalFlow:
    """How signals travel forward and gradients backward, at one point of training."""

    name: str  # for example "highway, trained"
    layers: tuple[str, ...]
    activation: Array  # (layer,) root mean square of the layer's output
    gradient: Array  # (layer,) root mean square of the gradient of the loss by the layer's output


@dataclass(frozen=True)
class PruneReport:
    """A network before and after its idle layers were removed."""

    kept: tuple[int, ...]
    removed: tuple[int, ...]
    layers: tuple[str, ...]
    split: str  # the data on which the layers were chosen
    tolerance: float
    chosen: tuple[Score, Score]  # before, after, on `split`
    test: tuple[Score, Score] | None  # before, after, on the test set
    tuned: Score | None  # test score after fine-tuning
    parameters: tuple[int, int]
    multiply_adds: tuple[int, int]
    latency: tuple[float, float]  # median seconds per batch
    latency_batch: int
