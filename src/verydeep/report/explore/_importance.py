"""Which layers of a network matter: the order in which they can be closed, and which of them are idle."""

import os
from typing import Any

from verydeep.analysis import samples_of
from verydeep.data import Dataset
from verydeep.report._layers_used import Bar, find_usage, usage_samples
from verydeep.training import Run


def describe_importance(run: Run, dataset: Dataset, layers: int, samples: int | None, bar: Bar) -> dict[str, Any]:
    """Count the idle layers as `verydeep analyze` and the report do, or take what they found.

    Args:
        run: The run.
        dataset: Its data.
        layers: The number of layers that can be closed.
        samples: At most this number of samples; such a result is not saved. None takes all.
        bar: A context manager that shows the progress.
    """
    if layers == 0:
        return {"order": [], "idle": [], "samples": "", "reported": True, "allowed": ""}
    save = samples is None and os.access(run.path, os.W_OK)
    counted = usage_samples(run, dataset, samples=samples)
    usage = find_usage(run, counted, None, run.path / "analysis", save=save, bar=bar)
    return {
        "order": [int(layer) for layer in usage.greedy.order],
        "idle": sorted(int(layer) for layer in usage.idle),
        "samples": samples_of(usage.greedy.samples, usage.split),
        "reported": samples is None,
        "allowed": usage.within_text,
    }
