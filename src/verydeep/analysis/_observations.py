"""What the paper saw in its networks (Section 4), as numbers of this one."""

from typing import Any

import numpy as np

from verydeep.analysis._results import (
    OPEN,
    SHUT,
    Array,
    DepthUsage,
    GateStatistics,
    LesionStudy,
    Observations,
    PerLayer,
)

STRIPES = 0.9  # of all change: after the layer where so much of it has happened, outputs are stripes
IDLE = 0.001  # a lesion that costs less accuracy than this shows an idle layer


def observations(
    gates: GateStatistics | None = None, lesions: LesionStudy | None = None, usage: DepthUsage | None = None
) -> Observations:
    """State the paper's observations with this network's numbers; those that need a result not given are None."""
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
        "stripes_begin": stripes_begin(gates.change),
    }


def _of_lesions(lesions: LesionStudy | None) -> dict[str, Any]:
    if lesions is None:
        return {}
    rise = lesions.error - lesions.baseline.error
    order = np.argsort(-lesions.loss, kind="stable")
    return {
        "idle_alone": float((rise <= IDLE).mean()),
        "most_important": tuple(int(layer) for layer in order[:5]),
        "largest_rise": float(rise.max()),
    }


def _of_usage(usage: DepthUsage | None) -> dict[str, Any]:
    if usage is None:
        return {}
    layers = len(usage.greedy.layers)
    return {"layers_used": len(usage.kept), "idle_together": 1 - len(usage.kept) / layers}


def stripes_begin(change: Array) -> int:
    """How many layers it takes until 90 % of all that layers change has been changed."""
    done = np.cumsum(change)
    return int(np.searchsorted(done, STRIPES * done[-1]) + 1) if done[-1] > 0 else 0


def _flat(values: PerLayer) -> Array:
    return np.concatenate([value.ravel() for value in values])


def _correlation(a: Array, b: Array) -> float | None:
    """Pearson's, over all gates; None where one side does not vary or is not known."""
    known = np.isfinite(a) & np.isfinite(b)
    if known.sum() < 2 or np.ptp(a[known]) == 0 or np.ptp(b[known]) == 0:
        return None
    return float(np.corrcoef(a[known], b[known])[0, 1])
