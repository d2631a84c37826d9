"""What pruning costs and what it gains, measured on both networks in turn."""

import statistics
import time

import torch
from torch import Tensor, nn

from verydeep.analysis._data import Data, device, first_samples
from verydeep.analysis._prune import highway_layers
from verydeep.analysis._results import DepthUsage, PruneReport
from verydeep.analysis._score import evaluate_model
from verydeep.analysis._view import twin
from verydeep.models import multiply_adds

_BATCH = 100
_REPEATS = 30


def prune_report(
    model: nn.Module, pruned: nn.Module, usage: DepthUsage, data: Data, test: Data | None = None, batch: int = _BATCH
) -> PruneReport:
    """Measure a network before and after pruning: scores, parameters, multiply-adds, latency.

    Args:
        model: Before.
        pruned: What `prune(model, usage)` made of it.
        usage: Which layers were found idle.
        data: What they were found on.
        test: What neither training nor pruning has seen.
        batch: Samples of the batch whose latency is measured.
    """
    both = twin(model).eval(), twin(pruned).eval()
    x = first_samples(data, batch).to(device(model))
    removed = usage.idle[: len(highway_layers(model)) - len(highway_layers(pruned))]  # an MLP has kept one
    parameters, products = [], []
    for network in both:
        parameters.append(sum(p.numel() for p in network.parameters() if p.requires_grad))
        products.append(multiply_adds(network, x[:1]))
    return PruneReport(
        kept=tuple(sorted(set(range(len(usage.greedy.layers))) - set(removed))),
        removed=removed,
        layers=usage.greedy.layers,
        split=usage.greedy.split,
        tolerance=usage.tolerance,
        chosen=(evaluate_model(both[0], data), evaluate_model(both[1], data)),
        test=None if test is None else (evaluate_model(both[0], test), evaluate_model(both[1], test)),
        tuned=None,
        parameters=(parameters[0], parameters[1]),
        multiply_adds=(products[0], products[1]),
        latency=latencies(both, x),
        latency_batch=len(x),
    )


def latencies(networks: tuple[nn.Module, nn.Module], x: Tensor) -> tuple[float, float]:
    """Median seconds of one batch, taken in turn so that a slow moment of the machine meets both."""
    times: tuple[list[float], list[float]] = ([], [])
    with torch.no_grad():
        for _ in range(_REPEATS + 3):
            for network, taken in zip(networks, times, strict=True):
                start = time.perf_counter()
                network(x)
                taken.append(time.perf_counter() - start)
    first, second = (statistics.median(taken[3:]) for taken in times)  # the first few warm up
    return first, second
