"""The weights of a run during training, for the page's slider over epochs."""

from typing import Any

import numpy as np

from verydeep.report.explore._inputs import encode
from verydeep.report.explore._network import describe_network
from verydeep.training import Run

_BYTES = 4_000_000  # of all snapshots, as float16
_FEWEST = 3


def describe_snapshots(run: Run, final: np.ndarray) -> list[dict[str, Any]]:
    """Encode the snapshots that a run kept, as float16; of many or large ones, some that are spread evenly.

    Args:
        run: The run.
        final: The weights that it ended with, which are in the page anyway.
    """
    epochs = run.snapshots
    most = max(_FEWEST, _BYTES // (2 * max(final.size, 1)))
    if len(epochs) > most:
        epochs = [epochs[round(place)] for place in np.linspace(0, len(epochs) - 1, most)]
    found = []
    for epoch in epochs:
        weights = describe_network(run.model_at(epoch)).weights
        if not np.array_equal(weights, final) and np.abs(weights).max(initial=0) < np.finfo(np.float16).max:
            found.append({"epoch": epoch, "weights": encode(weights.astype("<f2"))})
    return found
