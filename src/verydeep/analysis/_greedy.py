"""Layers closed one after the other, and how many the network can do without."""

from collections.abc import Collection

import numpy as np
from torch import nn

from verydeep.analysis._data import Data, Progress, Subject, part
from verydeep.analysis._lesions import Found, Surgeon, check_layers
from verydeep.analysis._results import DepthUsage, GreedyLesion
from verydeep.analysis._score import score
from verydeep.errors import UserError

CHOOSING = 5000


def greedy_lesions(
    model: nn.Module,
    data: Data,
    split: str = "",
    *,
    layers: Collection[int] | None = None,
    choosing: int | None = CHOOSING,
    group: int = 1,
    progress: Progress | None = None,
) -> GreedyLesion:
    """Close layers one after the other, each time the one that costs the least loss, until all are closed.

    The order is chosen on some samples, the curve is then measured on all of them. Choosing costs about L ** 2 / 6
    passes over the samples it is done on, the curve L / 2 passes over all.

    Args:
        model: Anything with highway layers that returns logits; it is not changed.
        data: What to measure on: a `Split`, or batches.
        split: What the data is called in the result.
        layers: Which layers may be closed; all unless given.
        choosing: On how many samples the order is chosen: random ones of a split, the first of other data. None takes
            all.
        group: How many layers are closed after each comparison; more is faster and less careful.
        progress: Is told the share that is done.
    """
    if group < 1:
        raise UserError(f"group must be at least 1, got {group}")
    subject = Subject.of(model, data)
    names = subject.view.layers
    check_layers(layers or (), len(names))
    candidates = set(range(len(names)) if layers is None else layers)
    few = subject if choosing is None else subject.some(choosing)
    order = _order(Surgeon.of(few), candidates, group, part(progress, 0, 0.8))
    return _curve(subject, order, split, part(progress, 0.8, 1))


def depth_usage(greedy: GreedyLesion, tolerance: float = 0.001) -> DepthUsage:
    """How many layers the network uses: the fewest on the greedy curve that keep the accuracy within `tolerance`.

    Args:
        greedy: The curve.
        tolerance: How much accuracy may be lost, as a share: 0.001 is 0.1 %.
    """
    if not 0 <= tolerance < 1:
        raise UserError(f"tolerance must be a share from 0 to below 1, such as 0.001 for 0.1 %; got {tolerance}")
    within = greedy.error <= greedy.error[0] + tolerance + 1e-9  # errors are counts, but their quotients are rounded
    closed = int(np.flatnonzero(within).max())
    idle = greedy.order[:closed]
    return DepthUsage(greedy, tolerance, tuple(sorted(set(range(len(greedy.layers))) - set(idle))), idle)


def _order(surgeon: Surgeon, candidates: set[int], group: int, progress: Progress | None) -> tuple[int, ...]:
    order: list[int] = []
    left, count = sorted(candidates), max(len(candidates), 1)
    while left:
        share = part(progress, _done(len(order), count), _done(len(order) + group, count))
        found = surgeon.each(frozenset(order), left, share)
        order += [left[index] for index in _cheapest(found)[:group]]
        left = [layer for layer in left if layer not in order]
    return tuple(order)


def _cheapest(found: Found) -> list[int]:
    """Candidates by their loss, then their error; a loss that is not a number comes last."""
    return [int(index) for index in np.lexsort((found.error, found.loss))]


def _curve(subject: Subject, order: tuple[int, ...], split: str, progress: Progress | None) -> GreedyLesion:
    scores, samples = [], 0
    for closed in range(len(order) + 1):
        found, samples = score(subject, frozenset(order[:closed]))
        scores.append(found)
        if progress is not None:
            progress((closed + 1) / (len(order) + 1))
    loss, error = np.array([s.loss for s in scores]), np.array([s.error for s in scores])
    return GreedyLesion(subject.view.layers, split, samples, order, loss, error)


def _done(closed: int, count: int) -> float:
    """The work of choosing that is done: comparisons get cheaper with every layer that is closed."""
    return 1 - (1 - min(closed / count, 1)) ** 3
