"""What was found, in sentences: each with its number, and where the paper says something, that beside it."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from verydeep.analysis import ClassRouting, DepthUsage, GateStatistics, LesionStudy
from verydeep.report._axes import Array, grid
from verydeep.report._gates import start_of
from verydeep.report._lesions import SETS
from verydeep.report._routing import significant


@dataclass(frozen=True)
class Observation:
    """A sentence about this network, and what the paper observed in its own."""

    found: str
    paper: str = ""


def answer(usage: DepthUsage, data: str) -> str:
    """How many layers the problem needs."""
    kept, total = len(usage.kept), len(usage.greedy.layers)
    where = SETS.get(usage.greedy.split, usage.greedy.split)
    if kept == total:
        return (
            f"For {data}, this network needs all its {total} highway layers: closing any of them costs more than "
            f"{usage.tolerance:.2%} accuracy on the {where}."
        )
    change = float(usage.greedy.error[total - kept] - usage.greedy.error[0])
    cost = "costs no accuracy" if change <= 0 else f"costs {change:.2%} accuracy"
    others = "the other one is" if total - kept == 1 else f"the other {total - kept} are"
    return (
        f"For {data}, this network needs {kept} of its {total} highway layers: {others} idle. "
        f"Closing what is idle {cost} on the {where}."
    )


def gate_observations(gates: GateStatistics) -> list[Observation]:
    """What Figure 2 shows."""
    found = [*_bias_observations(gates), _selectivity(gates)]
    changes = _changes(gates)
    if changes is not None and changes.sum() > 0:
        most = int(np.searchsorted(changes.cumsum() / changes.sum(), 0.9)) + 2
        found.append(
            Observation(
                f"Nine tenths of the change in the block outputs of the sample shown happen up to layer {most} of "
                f"{len(gates.layers)}; after it, outputs stay nearly as they are and form stripes.",
                "Most of the change happens in the early layers: about 15 for MNIST, 40 for CIFAR-100.",
            )
        )
    return found


def _bias_observations(gates: GateStatistics) -> list[Observation]:
    bias, start = grid(gates.bias), start_of(gates)
    if not np.isfinite(bias).any():
        return []
    found = []
    if start is not None:
        fell = float((bias[np.isfinite(bias)] < start).mean())
        found.append(
            Observation(
                f"{fell:.0%} of the gate biases are below the {start:g} they started from.".replace("-", "−"),
                "Contrary to expectation, most biases decreased further during training.",
            )
        )
    by_layer = np.array([[np.nanmean(row) for row in bias], [row.mean() for row in gates.mean]])
    if by_layer.shape[1] > 2 and (by_layer.std(1) > 0).all():
        found.append(
            Observation(
                f"The correlation over layers between the mean bias and the mean gate output is "
                f"{np.corrcoef(by_layer)[0, 1]:+.2f}.",
                "In the CIFAR-100 network biases increase with depth while gate activity decreases: strong negative "
                "biases make gates selective instead of shutting them.",
            )
        )
    return found


def _selectivity(gates: GateStatistics) -> Observation:
    share = np.concatenate([row.ravel() for row in gates.open_share])
    return Observation(
        f"A sample opens {share.mean():.1%} of the gates (above 0.5); {(share > 0.01).mean():.0%} of the gates are "
        f"open for more than one sample in a hundred.",
        "For each sample only a few blocks transform, but different blocks for different samples.",
    )


def _changes(gates: GateStatistics) -> Array | None:
    """How much block outputs change from each layer to the next, where these have equal widths."""
    outputs = gates.sample_outputs
    pairs = [(a, b) for a, b in pairwise(outputs) if a.shape == b.shape]
    if len(pairs) < len(outputs) - 1 or not pairs:
        return None
    return np.array([np.abs(b - a).mean() for a, b in pairs])


def routing_observations(routing: ClassRouting) -> list[Observation]:
    """What Figure 3 shows."""
    real = [significant(d, e) for d, e in zip(routing.difference, routing.standard_error, strict=True)]
    sizes = np.sqrt([np.nanmean(layer**2) for layer in routing.difference])
    third = max(1, len(sizes) // 3)
    share = float(np.concatenate([layer.ravel() for layer in real]).mean())
    return [
        Observation(
            f"{share:.0%} of the differences between a class and all samples are beyond three standard errors. "
            f"Their size (root mean square) is {sizes[:third].mean():.2g} in the first third of the layers and "
            f"{sizes[-third:].mean():.2g} in the last.",
            "The mean activity differs between classes: within the first 15 layers for MNIST, spread over all for "
            "CIFAR-100.",
        ),
        Observation(
            f"From the gates alone a linear classifier names the class of {routing.probe_accuracy:.1%} of "
            f"{routing.probe_samples:,} samples it has not seen; always naming the most frequent class gets "
            f"{routing.probe_chance:.1%}.",
            "Gating is not only a mechanism that eases training, but an important part of the computation.",
        ),
    ]


def lesion_observations(lesions: LesionStudy) -> list[Observation]:
    """What Figure 4 shows."""
    worst = int(lesions.error.argmax())
    rise = lesions.error - lesions.baseline.error
    unnoticed = float((rise <= 0.001).mean())
    return [
        Observation(
            f"Closing layer {worst + 1} hurts most: the error rises from {lesions.baseline.error:.2%} to "
            f"{lesions.error[worst]:.2%}."
        ),
        Observation(
            f"{unnoticed:.0%} of the layers can be closed one at a time without raising the error by more than 0.1%.",
            "About 60% of the layers of the MNIST network contribute almost nothing; in the CIFAR-100 network any of "
            "the first 40 or so is missed.",
        ),
    ]
