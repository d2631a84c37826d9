"""How many layers a network uses: layers are closed one after the other, the cheapest first."""

from collections.abc import Collection

import numpy as np
from torch import nn

from verydeep.analysis._data import Data, ModelAndData, Progress, subrange
from verydeep.analysis._evaluate import evaluate_closed
from verydeep.analysis._lesion_results import DepthUsage, GreedyLesion
from verydeep.analysis._lesions import LesionRunner
from verydeep.cpu import cpu_settings
from verydeep.errors import UserError
from verydeep.objectives import Objective

_CHOOSING = 5000


@cpu_settings()
def greedy_lesions(
    model: nn.Module,
    data: Data,
    split: str = "",
    *,
    layers: Collection[int] | None = None,
    choosing: int | None = _CHOOSING,
    group: int = 1,
    progress: Progress | None = None,
    objective: Objective | None = None,
) -> GreedyLesion:
    """Close layers one after the other, each time the one that costs the least loss, until all are closed.

    The order is selected on some of the samples, and the curve is then measured on all of them. Selecting takes about
    L ** 2 / 6 passes over the samples it uses, and measuring takes L / 2 passes over all samples.

    Args:
        model: Any model with highway layers; it is not changed.
        data: A pair `(x, y)` of arrays or tensors, a split of a `Dataset`, or batches.
        split: What the result calls the data.
        layers: Which layers may be closed; by default, all.
        choosing: The number of samples on which the order is selected: random ones of a split, the first ones of other
            data. None uses all.
        group: How many layers are closed after each comparison; larger groups are faster but less exact.
        progress: Called with the fraction of the work that is done.
        objective: What is measured; by default, the task of a split. Without a task, whole numbers are classes and
            fractions the targets of a regression.

    Returns:
        The order, and loss and error after each closed layer.

    Example:
        >>> from verydeep.analysis import greedy_lesions
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> greedy = greedy_lesions(model, data.test, "test")
        >>> greedy.error.shape  # of the full network, and with one, two and three layers closed
        (4,)
    """
    if group < 1:
        raise UserError(f"group must be at least 1, got {group}")
    subject = ModelAndData.of(model, data, objective)
    depth = len(subject.model.layers)
    _check_layers(layers or (), depth)
    candidates = set(range(depth) if layers is None else layers)
    few = subject if choosing is None else subject.subset(choosing)
    order = _order(LesionRunner.of(few), candidates, group, subrange(progress, 0, 0.8))
    return _curve(subject, order, split, subrange(progress, 0.8, 1))


def depth_usage(greedy: GreedyLesion, tolerance: float = 0.001) -> DepthUsage:
    """Find how many layers the network uses: the fewest on the greedy curve with an accuracy within `tolerance`.

    Args:
        greedy: The curve.
        tolerance: The largest loss of accuracy allowed, as a fraction: 0.001 is 0.1 %; of a regression, of R2.

    Returns:
        The layers that are kept, and the idle ones.

    Example:
        >>> from verydeep.analysis import depth_usage, greedy_lesions
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> usage = depth_usage(greedy_lesions(model, data.test, "test"))
        >>> usage
        <DepthUsage: ... of 3 layers used within 0.10% accuracy on 359 samples of the test set; ...>
    """
    if not 0 <= tolerance < 1:
        raise UserError(f"tolerance must be at least 0 and less than 1, such as 0.001 for 0.1 %; got {tolerance}")
    within = greedy.error <= greedy.error[0] + tolerance + 1e-9  # errors are counts, but their quotients are rounded
    closed = int(np.flatnonzero(within).max())
    idle = greedy.order[:closed]
    return DepthUsage(greedy, tolerance, tuple(sorted(set(range(len(greedy.layers))) - set(idle))), idle)


def _check_layers(layers: Collection[int], depth: int) -> None:
    wrong = sorted(layer for layer in layers if not 0 <= layer < depth)
    if wrong:
        raise UserError(f"there is no highway layer {wrong[0]}: layers are numbered 0 to {depth - 1}")


def _order(runner: LesionRunner, candidates: set[int], group: int, progress: Progress | None) -> tuple[int, ...]:
    """The order in which layers are closed: by loss, then by error; a loss that is not a number comes last."""
    order: list[int] = []
    left, count = sorted(candidates), max(len(candidates), 1)
    while left:
        share = subrange(progress, _choosing_done(len(order), count), _choosing_done(len(order) + group, count))
        scores = runner.close_each(frozenset(order), left, share)
        cheapest = np.lexsort((scores.error, scores.loss))
        order += [left[int(index)] for index in cheapest[:group]]
        left = [layer for layer in left if layer not in order]
    return tuple(order)


def _curve(subject: ModelAndData, order: tuple[int, ...], split: str, progress: Progress | None) -> GreedyLesion:
    points = []
    for closed in range(len(order) + 1):
        points.append(evaluate_closed(subject, frozenset(order[:closed])))
        if progress is not None:
            progress((closed + 1) / (len(order) + 1))
    loss, error = np.array([point.loss for point in points]), np.array([point.error for point in points])
    measure = subject.objective.measure
    return GreedyLesion(subject.model.layers, split, points[-1].samples, order, loss, error, measure)


def _choosing_done(closed: int, count: int) -> float:
    """The fraction of the selection that is done: comparisons get cheaper with every closed layer."""
    return 1 - (1 - min(closed / count, 1)) ** 3
