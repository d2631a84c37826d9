"""The weights of a run during training, for the page's slider over epochs."""

from typing import Any

import numpy as np

from verydeep.models import quantise
from verydeep.report.explore._inputs import encode
from verydeep.report.explore._network import describe_network
from verydeep.training import Run

_BYTES = 1_250_000  # of all snapshots
_FEWEST = 3


def describe_snapshots(run: Run, final: np.ndarray) -> list[dict[str, Any]]:
    """Encode the snapshots that a run kept, a byte per weight; of many or large ones, some that are spread evenly.

    Args:
        run: The run.
        final: Its weights, which are in the page anyway: those of the last epoch, or of the best one.
    """
    end = run.measured.epoch if run.measured is not None else 0
    epochs = [epoch for epoch in run.snapshots if epoch < end]
    most = max(_FEWEST, _BYTES // max(final.size, 1))
    if len(epochs) > most:
        epochs = [epochs[round(place)] for place in np.linspace(0, len(epochs) - 1, most)]
    found = []
    for epoch in epochs:
        weights = describe_network(run.model_at(epoch)).weights
        if np.abs(weights).max(initial=0) < np.finfo(np.float16).max:
            multiples, scales = quantise(weights)
            found.append({"epoch": epoch, "weights": encode(multiples), "scales": encode(scales.astype("<f2"))})
    return found
