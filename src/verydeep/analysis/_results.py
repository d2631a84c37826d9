"""What the analyses find, as small results: computed once, then saved, drawn, and shown in reports.

"Per layer" tuples hold one array for every highway layer, because the stages of a convolutional network differ in
width. `layers` are the layers' names in the order of the data; a layer's number is its place in it, from 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
PerLayer = tuple[Array, ...]

OPEN = 0.5  # a transform gate above this is called open
SHUT = 0.05  # below this nearly shut, and otherwise active
NOISE = 3  # standard errors within which a difference may be noise


@dataclass(frozen=True)
class Score:
    """How well a network does on a set of samples."""

    loss: float  # mean cross-entropy
    error: float  # share of wrong answers

    @property
    def accuracy(self) -> float:
        """Share of right answers."""
        return 1 - self.error


@dataclass(frozen=True)
class GateStatistics:
    """What the transform gates do (Figure 2). For feature maps, statistics are over positions too."""

    layers: tuple[str, ...]
    samples: int
    bias: PerLayer  # (block,); NaN where the gate is a module without one
    initial_bias: PerLayer  # (block,); what training started from, NaN where it is not known
    mean: PerLayer  # (block,) gate output over all samples
    variance: PerLayer  # (block,)
    open_share: PerLayer  # (block,) share of samples whose gate is above 0.5
    shut_share: PerLayer  # (block,) share of samples whose gate is below 0.05
    sample: int  # which single sample the next two show
    sample_gates: PerLayer  # (block,), or (block, height, width) for feature maps
    sample_outputs: PerLayer  # as sample_gates: the block outputs
    change: Array  # (layer,) root mean square over all samples of block output minus input: what the layer changes


@dataclass(frozen=True)
class ClassRouting:
    """How gate activity differs between classes (Figure 3)."""

    layers: tuple[str, ...]
    classes: tuple[str, ...]
    counts: NDArray[np.int64]  # (class,) samples
    mean: PerLayer  # (block,) over all samples
    difference: PerLayer  # (class, block): mean over the class minus mean over all
    standard_error: PerLayer  # (class, block): of the difference; unknown (NaN) for a class of one sample
    distance: Array  # (class, class): root mean square difference between the classes' mean gates, over all blocks
    linkage: Array  # (class - 1, 4): average-linkage clustering of `distance`, as scipy has it
    probe_accuracy: float  # of a linear classifier on gates alone, cross-validated
    probe_chance: float  # what always naming the most frequent class would get
    probe_samples: int

    @property
    def significant(self) -> float:
        """Share of the differences that are hardly noise, among those whose standard error is known."""
        pairs = zip(self.difference, self.standard_error, strict=True)
        known = np.concatenate([is_significant(d, e)[np.isfinite(e)] for d, e in pairs])
        return float(known.mean()) if known.size else 0.0


def is_significant(difference: Array, error: Array) -> NDArray[np.bool_]:
    """Where a difference is hardly noise."""
    return np.asarray(np.abs(difference) > NOISE * error)


@dataclass(frozen=True)
class LesionStudy:
    """The network with each layer closed in turn (Figure 4)."""

    layers: tuple[str, ...]
    split: str
    samples: int
    baseline: Score  # nothing closed
    loss: Array  # (layer,)
    error: Array  # (layer,)


@dataclass(frozen=True)
class PairLesion:
    """The network with every two layers closed together; the diagonal closes one."""

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
    """How many layers the network uses: the fewest kept on the greedy curve whose accuracy is within tolerance."""

    greedy: GreedyLesion
    tolerance: float  # of accuracy, as a share: 0.001 is 0.1 %
    kept: tuple[int, ...]
    idle: tuple[int, ...]  # in the order of closing


@dataclass(frozen=True)
class SignalFlow:
    """How signals travel forward and gradients backward, at one moment of a network's life."""

    name: str  # for example "highway, trained"
    layers: tuple[str, ...]
    activation: Array  # (layer,) root mean square of the layer's output
    gradient: Array  # (layer,) root mean square of the loss's gradient by the layer's output


@dataclass(frozen=True)
class PruneReport:
    """A network before and after its idle layers were removed."""

    kept: tuple[int, ...]
    removed: tuple[int, ...]
    layers: tuple[str, ...]
    split: str  # on which the layers were chosen
    tolerance: float
    chosen: tuple[Score, Score]  # before, after, on `split`
    test: tuple[Score, Score] | None  # before, after, on the test set
    tuned: Score | None  # test score after fine-tuning
    parameters: tuple[int, int]
    multiply_adds: tuple[int, int]
    latency: tuple[float, float]  # median seconds of one batch
    latency_batch: int


@dataclass(frozen=True)
class Observations:
    """The paper's observations (Section 4) with the numbers of one network; None is not known.

    Attributes:
        biases_fell: Share of gate biases that training made more negative ("most biases decreased further").
        bias_with_depth: Correlation of the biases with depth ("the biases increase with depth").
        activity_with_depth: Correlation of the mean gates with depth.
        activity_with_bias: Correlation of the mean gates with their biases ("inversely correlated").
        active_on_average: Share of gates whose mean over all samples is at least 0.05.
        active_per_sample: Share of gates that are at least 0.05, of a single sample, averaged over all samples.
        active_in_sample: The same for the one sample that the figure shows ("very sparse").
        open_on_average: Share of gates whose mean is above 0.5.
        open_per_sample: Share of gates above 0.5 of a single sample, averaged over all samples.
        stripes_begin: After how many layers 90 % of all change of block outputs has happened ("early layers").
        idle_alone: Share of layers that cost at most 0.1 % of accuracy when closed alone.
        most_important: The five layers that cost the most loss when closed alone, the first the most.
        largest_rise: How much the error rises, as a share, when the layer is closed that raises it most.
        layers_used: Layers left on the greedy curve within its tolerance.
        idle_together: Share of layers that can be closed together within the tolerance.
    """

    biases_fell: float | None = None
    bias_with_depth: float | None = None
    activity_with_depth: float | None = None
    activity_with_bias: float | None = None
    active_on_average: float | None = None
    active_per_sample: float | None = None
    active_in_sample: float | None = None
    open_on_average: float | None = None
    open_per_sample: float | None = None
    stripes_begin: int | None = None
    idle_alone: float | None = None
    most_important: tuple[int, ...] | None = None
    largest_rise: float | None = None
    layers_used: int | None = None
    idle_together: float | None = None
