"""Which layers of a network matter: the order in which they can be closed, and which of them are idle."""

from typing import Any

from verydeep.analysis import depth_usage, greedy_lesions, some_samples
from verydeep.data import Dataset, Split
from verydeep.models import Network, multiply_adds

_WORK = 30e9  # multiply-adds per round
_MOST_SAMPLES, _FEWEST_SAMPLES, _MOST_ROUNDS = 300, 16, 8


def describe_importance(model: Network, dataset: Dataset, split: Split, split_name: str, layers: int) -> dict[str, Any]:
    """Close layers one after the other, as `verydeep analyze` does, with as much work as takes a few seconds.

    Args:
        model: The network.
        dataset: Its data; the order is selected on training samples.
        split: Held-out samples, on which it is measured which layers are idle.
        split_name: What they are called.
        layers: The number of layers that can be closed; if the analysis cannot close them, the page measures itself.
    """
    if layers == 0 or layers != model.highway_depth:
        return {"order": [], "idle": [], "samples": 0}
    work = multiply_adds(model) * layers / 2
    samples = int(max(_FEWEST_SAMPLES, min(_MOST_SAMPLES, _WORK // work)))
    rounds = int(max(1, min(_MOST_ROUNDS, _WORK // (work * samples))))
    greedy = greedy_lesions(
        model,
        some_samples(split, samples),
        split_name,
        train=some_samples(dataset.train, samples),
        group=max(1, -(-layers // rounds)),
    )
    kept = set(depth_usage(greedy).kept)
    return {
        "order": [int(layer) for layer in greedy.order],
        "idle": [layer for layer in range(layers) if layer not in kept],
        "samples": int(greedy.samples),
    }
