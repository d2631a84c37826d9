"""What the transform gates do over a whole set of samples (Figure 2 of the paper)."""

import numpy as np
import torch
from torch import Tensor, nn

from verydeep.analysis._data import Data, Progress, Subject
from verydeep.analysis._moments import Moments, array
from verydeep.analysis._results import OPEN, SHUT, Array, GateStatistics, PerLayer
from verydeep.analysis._view import Unit
from verydeep.analysis._watch import Look, Watch
from verydeep.data import Split
from verydeep.errors import UserError
from verydeep.nn import HighwayLayer


def gate_statistics(model: nn.Module, data: Data, sample: int = 0, progress: Progress | None = None) -> GateStatistics:
    """Look at every transform gate while all samples pass, once; memory does not grow with their number.

    Args:
        model: Anything with highway layers that returns logits; it is not changed.
        data: What to look at: a `Split`, or batches.
        sample: The number of the single sample whose gates and block outputs are kept.
        progress: Is told the share that is done.
    """
    if isinstance(data, Split) and not 0 <= sample < len(data):  # before the work, where that is possible
        raise no_sample(sample, len(data))
    subject = Subject.of(model, data)
    rows = [_Layer() for _ in subject.view.layers]
    seen = 0
    shown: list[Look] = []
    with torch.no_grad():
        for x, _ in subject.batches(progress):
            watch = Watch(len(x))
            subject.view.run(watch, x)
            for row, look in zip(rows, watch.looks, strict=True):
                row.add(look)
            if seen <= sample < seen + len(x):
                shown = [_single(look, sample - seen) for look in watch.looks]
            seen += len(x)
    if not shown:
        raise no_sample(sample, seen)
    return _result(subject, rows, seen, sample, shown)


def no_sample(sample: int, samples: int) -> UserError:
    """The error for a sample that is not there."""
    return UserError(f"there is no sample {sample}: they are numbered 0 to {samples - 1}")


class _Layer:
    """The statistics of one layer so far."""

    def __init__(self) -> None:
        self.gates, self.changes = Moments(), Moments()
        self.open, self.shut = torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)

    def add(self, look: Look) -> None:
        t = look.t.movedim(1, -1).reshape(-1, look.t.shape[1])  # (sample and position, block)
        self.gates.add(t)
        self.changes.add((look.y - look.x).reshape(-1, 1))
        self.open = self.open + (t > OPEN).sum(0).cpu()
        self.shut = self.shut + (t < SHUT).sum(0).cpu()

    def columns(self) -> tuple[Array, Array, Array, Array]:
        """Mean, variance, share of open and share of shut gates, each `(block,)`."""
        open_, shut = (array(counts / self.gates.count[0]) for counts in (self.open, self.shut))
        return array(self.gates.mean[0]), array(self.gates.variance[0]), open_, shut

    def change(self) -> float:
        """Root mean square of what the layer adds to its input."""
        return float((self.changes.variance + self.changes.mean.square()).sqrt())


def _single(look: Look, sample: int) -> Look:
    return Look(*(value[sample].clone() for value in (look.x, look.t, look.y)))


def _result(subject: Subject, rows: list[_Layer], samples: int, sample: int, shown: list[Look]) -> GateStatistics:
    mean, variance, open_share, shut_share = zip(*(row.columns() for row in rows), strict=True)
    bias, initial_bias = _biases(subject.view.units, [len(values) for values in mean])
    return GateStatistics(
        layers=subject.view.layers,
        samples=samples,
        bias=bias,
        initial_bias=initial_bias,
        mean=mean,
        variance=variance,
        open_share=open_share,
        shut_share=shut_share,
        sample=sample,
        sample_gates=tuple(array(look.t) for look in shown),
        sample_outputs=tuple(array(look.y) for look in shown),
        change=np.array([row.change() for row in rows]),
    )


def _biases(units: tuple[Unit, ...], widths: list[int]) -> tuple[PerLayer, PerLayer]:
    """The gates' biases, and what they were before training."""
    now: list[Array] = []
    before: list[Array] = []
    for unit in units:
        initial = getattr(unit.module, "initial_gate_bias", None)
        for bias in _unit_biases(unit):
            width = widths[len(now)]
            now.append(array(bias) if bias is not None and bias.numel() == width else np.full(width, np.nan))
            before.append(np.full(width, np.nan if initial is None else float(initial)))
    return tuple(now), tuple(before)


def _unit_biases(unit: Unit) -> list[Tensor | None]:
    """One for each layer; None where the gate is a module without biases."""
    try:
        bias = getattr(unit.module, "gate_bias", None)
    except UserError:
        bias = None
    if bias is None:
        return [None] * unit.depth
    return [bias.flatten()] if isinstance(unit.module, HighwayLayer) else list(bias)
