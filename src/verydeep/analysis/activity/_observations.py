"""The paper's observations about its networks (Section 4), as numbers for any network."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from verydeep.analysis.activity._activity_results import OPEN, SHUT, Array, GateStatistics, PerLayer
from verydeep.analysis.lesions._lesion_results import LesionStudy
from verydeep.analysis.lesions._usage_results import DepthUsage

IDLE = 0.001  # a layer is idle if closing it costs at most this much accuracy
_STRIPES = 0.9  # block outputs look like stripes after the layers that make this fraction of all change


@dataclass(frozen=True)
class Observations:
    """The paper's observations (Section 4) with the numbers of one network; None means unknown.

    Attributes:
        biases_fell: Fraction of gate biases that training made more negative ("most biases decreased further").
        bias_with_depth: Correlation of the biases with depth ("the biases increase with depth").
        activity_with_depth: Correlation of the mean gates with depth.
        activity_with_bias: Correlation of the mean gates with their biases ("inversely correlated").
        active_on_average: Fraction of gates whose mean over all samples is at least 0.05.
        active_per_sample: Fraction of gates that are at least 0.05 for a single sample, averaged over all samples.
        active_in_sample: The same for the one sample that the figure shows ("very sparse").
        open_on_average: Fraction of gates whose mean is above 0.5.
        open_per_sample: Fraction of gates above 0.5 for a single sample, averaged over all samples.
        stripes_begin: The number of layers that make 90 % of all change of block outputs ("early layers").
        idle_alone: Fraction of layers that cost at most 0.1 % of accuracy, or one standard error, when closed alone.
        most_important: Up to five layers that cost the most loss when closed alone, most important first; layers whose
            cost may be noise are left out.
        largest_rise: The largest rise of the error by closing one layer, as a fraction.
        layers_used: Layers kept on the greedy curve within its tolerance.
        idle_together: Fraction of layers that can be closed together within the tolerance.
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


def observations(
    gates: GateStatistics | None = None, lesions: LesionStudy | None = None, usage: DepthUsage | None = None
) -> Observations:
    """Compute the paper's observations for one network; those that need a missing result are None."""
    return Observations(**_of_gates(gates), **_of_lesions(lesions), **_of_usage(usage))


def _of_gates(gates: GateStatistics | None) -> dict[str, Any]:
    if gates is None:
        return {}
    bias, mean = _flat(gates.bias), _flat(gates.mean)
    depth = np.repeat(np.arange(len(gates.layers), dtype=float), [len(values) for values in gates.mean])
    fell = _flat(gates.bias) < _flat(gates.initial_bias)
    known = np.isfinite(bias) & np.isfinite(_flat(gates.initial_bias))
    sample = [(values.reshape(len(values), -1) >= SHUT).mean(1) for values in gates.sample_gates]  # (block,) each
    return {
        "biases_fell": float(fell[known].mean()) if known.any() else None,
        "bias_with_depth": _correlation(bias, depth),
        "activity_with_depth": _correlation(mean, depth),
        "activity_with_bias": _correlation(mean, bias),
        "active_on_average": float((mean >= SHUT).mean()),
        "active_per_sample": float(1 - _flat(gates.shut_share).mean()),
        "active_in_sample": float(np.concatenate(sample).mean()),
        "open_on_average": float((mean > OPEN).mean()),
        "open_per_sample": float(_flat(gates.open_share).mean()),
        "stripes_begin": _stripes_begin(gates.change),
    }


def _of_lesions(lesions: LesionStudy | None) -> dict[str, Any]:
    if lesions is None:
        return {}
    rise = lesions.error - lesions.baseline.error
    return {
        "idle_alone": len(idle_alone(lesions)) / len(lesions.layers),
        "most_important": lesions.most_important[:5],
        "largest_rise": float(rise.max()),
    }


def idle_alone(lesions: LesionStudy) -> list[int]:
    """The layers that cost at most 0.1 % of accuracy when closed alone, or one standard error if that is larger."""
    noise = 0.0 if lesions.standard_error is None else np.nan_to_num(lesions.standard_error)
    return [int(layer) for layer in np.flatnonzero(lesions.error - lesions.baseline.error <= np.maximum(noise, IDLE))]


def _of_usage(usage: DepthUsage | None) -> dict[str, Any]:
    if usage is None:
        return {}
    layers = len(usage.greedy.layers)
    return {"layers_used": len(usage.kept), "idle_together": 1 - len(usage.kept) / layers}


def _stripes_begin(change: Array) -> int:
    """The number of layers that make 90 % of all change."""
    done = np.cumsum(change)
    return int(np.searchsorted(done, _STRIPES * done[-1]) + 1) if done[-1] > 0 else 0


def _flat(values: PerLayer) -> Array:
    return np.concatenate([value.ravel() for value in values])


def _correlation(a: Array, b: Array) -> float | None:
    """Pearson's correlation over all gates; None if one side is constant or unknown."""
    known = np.isfinite(a) & np.isfinite(b)
    if known.sum() < 2 or np.ptp(a[known]) == 0 or np.ptp(b[known]) == 0:
        return None
    return float(np.corrcoef(a[known], b[known])[0, 1])
