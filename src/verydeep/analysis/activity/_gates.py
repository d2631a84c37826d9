"""What the transform gates do over all samples of a set (Figure 2 of the paper)."""

import numpy as np
import torch
from torch import Tensor, nn

from verydeep.analysis._data import Data, ModelAndData, Progress, as_batched
from verydeep.analysis.activity._activity import LayerActivity, Moments, Recorder, to_array
from verydeep.analysis.activity._activity_results import OPEN, SHUT, Array, GateStatistics, PerLayer
from verydeep.analysis.blocks._blocks import LayerGroup
from verydeep.cpu import cpu_settings
from verydeep.data import Split
from verydeep.errors import UserError
from verydeep.nn import HighwayLayer


@cpu_settings()
def gate_statistics(model: nn.Module, data: Data, sample: int = 0, progress: Progress | None = None) -> GateStatistics:
    """Collect statistics of every transform gate in one pass; memory does not grow with the number of samples.

    Args:
        model: Any model with highway layers; it is not changed.
        data: A pair `(x, y)` of arrays or tensors, a split of a `Dataset`, or batches.
        sample: The index of the single sample whose gates and block outputs are kept.
        progress: Called with the fraction of the work that is done.

    Returns:
        Biases, and means and variances of gates, per layer and block.

    Example:
        >>> from verydeep.analysis import gate_statistics
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> gate_statistics(model, data.test)
        <GateStatistics: 3 layers, 48 gates, 359 samples; mean gate 0..., ...% open (above 0.5)>
        >>> x, y = data.test.x.numpy(), data.test.y.numpy()  # a pair of arrays works, too
        >>> gate_statistics(model, (x, y), sample=7).sample_gates[0].shape
        (16,)
    """
    data = as_batched(data, model)
    if isinstance(data, Split) and not 0 <= sample < len(data):  # before the work, if possible
        raise _no_sample(sample, len(data))
    subject = ModelAndData.of(model, data)
    statistics = [_LayerStatistics() for _ in subject.model.layers]
    samples = 0
    shown: list[LayerActivity] = []
    with torch.no_grad():
        for x, _ in subject.batches(progress):
            recorder = Recorder(len(x))
            subject.model.run(recorder, x)
            for layer, activity in zip(statistics, recorder.layers, strict=True):
                layer.add(activity)
            if samples <= sample < samples + len(x):
                shown = [activity.sample(sample - samples) for activity in recorder.layers]
            samples += len(x)
    if not shown:
        raise _no_sample(sample, samples)
    return _result(subject, statistics, samples, sample, shown)


def _no_sample(sample: int, samples: int) -> UserError:
    return UserError(f"there is no sample {sample}: samples are numbered 0 to {samples - 1}")


class _LayerStatistics:
    """Running statistics of one layer."""

    def __init__(self) -> None:
        self.gates, self.changes = Moments(), Moments()
        self.open, self.shut = torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)

    def add(self, activity: LayerActivity) -> None:
        t = activity.t.movedim(1, -1).reshape(-1, activity.t.shape[1])  # (sample and position, block)
        self.gates.add(t)
        self.changes.add((activity.y - activity.x).reshape(-1, 1))
        self.open = self.open + (t > OPEN).sum(0).cpu()
        self.shut = self.shut + (t < SHUT).sum(0).cpu()

    def columns(self) -> tuple[Array, Array, Array, Array]:
        """Mean, variance, fraction of open and of nearly closed gates, each `(block,)`."""
        open_, shut = (to_array(counts / self.gates.count[0]) for counts in (self.open, self.shut))
        return to_array(self.gates.mean[0]), to_array(self.gates.variance[0]), open_, shut

    def change(self) -> float:
        """Root mean square of the difference between the layer's output and its input."""
        return float((self.changes.variance + self.changes.mean.square()).sqrt())


def _result(
    subject: ModelAndData, statistics: list[_LayerStatistics], samples: int, sample: int, shown: list[LayerActivity]
) -> GateStatistics:
    mean, variance, open_share, shut_share = zip(*(layer.columns() for layer in statistics), strict=True)
    groups = tuple(group for group in subject.model.groups if isinstance(group, LayerGroup))
    bias, initial_bias = _biases(groups, [len(values) for values in mean])
    return GateStatistics(
        layers=subject.model.layers,
        samples=samples,
        bias=bias,
        initial_bias=initial_bias,
        mean=mean,
        variance=variance,
        open_share=open_share,
        shut_share=shut_share,
        sample=sample,
        sample_gates=tuple(to_array(activity.t) for activity in shown),
        sample_outputs=tuple(to_array(activity.y) for activity in shown),
        change=np.array([layer.change() for layer in statistics]),
    )


def _biases(groups: tuple[LayerGroup, ...], widths: list[int]) -> tuple[PerLayer, PerLayer]:
    """The gates' biases now and before training."""
    now: list[Array] = []
    before: list[Array] = []
    for group in groups:
        initial = getattr(group.module, "initial_gate_bias", None)
        for bias in _group_biases(group):
            width = widths[len(now)]
            now.append(to_array(bias) if bias is not None and bias.numel() == width else np.full(width, np.nan))
            before.append(np.full(width, np.nan if initial is None else float(initial)))
    return tuple(now), tuple(before)


def _group_biases(group: LayerGroup) -> list[Tensor | None]:
    """One per layer; None if the gate is a module without biases."""
    try:
        bias = getattr(group.module, "gate_bias", None)
    except UserError:
        bias = None
    if bias is None:
        return [None] * group.depth
    return [bias.flatten()] if isinstance(group.module, HighwayLayer) else list(bias)
