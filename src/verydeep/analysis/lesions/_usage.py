"""How many layers a network uses: layers are closed one after the other, the cheapest first."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from torch import nn

from verydeep.analysis._data import Data, ModelAndData, Progress, subrange
from verydeep.analysis._evaluate import evaluate_closed
from verydeep.analysis.blocks._find_blocks import Blocks
from verydeep.analysis.lesions._lesions import LesionRunner
from verydeep.analysis.lesions._paired import bootstrap_means, standard_errors
from verydeep.analysis.lesions._usage_results import DepthUsage, GreedyLesion
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
    train: Data | None = None,
    layers: Collection[int] | None = None,
    choosing: int | None = _CHOOSING,
    group: int = 1,
    progress: Progress | None = None,
    objective: Objective | None = None,
    blocks: Blocks = None,
) -> GreedyLesion:
    """Close layers one after the other, each time the one that costs the least loss, until all are closed.

    The order is selected on some of the training samples, and the curve is then measured on held-out data, so that
    selecting does not make the curve look better than it is. Without `train`, the same data serves for both. Selecting
    takes about L ** 2 / 6 passes over the samples it uses, and measuring takes L / 2 passes over all samples.

    Args:
        model: Any model with highway layers or residual blocks; it is not changed.
        data: The data that the curve is measured on, best held-out data: a pair `(x, y)` of arrays or tensors, a split
            of a `Dataset`, or batches.
        split: What the result calls the data.
        train: The training samples, on which the order is selected. The same order is measured on them too, as in the
            paper. By default, the order is selected on `data`.
        layers: Which layers may be closed; by default, all.
        choosing: The number of samples on which the order is selected: random ones of a split, the first ones of other
            data. None uses all.
        group: How many layers are closed after each comparison; larger groups are faster but less exact.
        progress: Called with the fraction of the work that is done.
        objective: What is measured; by default, the task of a split. Without a task, whole numbers are classes and
            fractions the targets of a regression.
        blocks: What is closed: the result of `find_blocks`, or patterns of names, such as `encoder.layer.*`. By
            default, highway layers and the residual blocks that `find_blocks` finds.

    Returns:
        The order, loss and error after each closed layer, and how far the error may differ by chance.

    Example:
        >>> from verydeep.analysis import greedy_lesions
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> greedy = greedy_lesions(model, data.test, "test", train=data.train)
        >>> greedy.error.shape  # of the full network, and with one, two and three layers closed
        (4,)
        >>> greedy.training.samples, greedy.samples
        (1438, 359)
    """
    if group < 1:
        raise UserError(f"group must be at least 1, got {group}")
    subject = ModelAndData.of(model, data, objective, blocks)
    training = None if train is None else ModelAndData.of(model, train, objective, subject.blocks)
    depth = len(subject.model.layers)
    _check_layers(layers or (), depth)
    candidates = set(range(depth) if layers is None else layers)
    source = training or subject
    few = source if choosing is None else source.subset(choosing)
    order = _order(LesionRunner.of(few), candidates, group, subrange(progress, 0, 0.8))
    curve = _curve(subject, order, split, subrange(progress, 0.8, 1 if training is None else 0.9))
    selected = sum(len(y) for _, y in few.batches())
    if training is None:
        return replace(curve, selected_on=split, selected_samples=selected)
    beside = _curve(training, order, "train", subrange(progress, 0.9, 1))
    return replace(curve, training=beside, selected_on="train", selected_samples=selected)


def depth_usage(greedy: GreedyLesion, tolerance: float = 0.001) -> DepthUsage:
    """Find how many layers the network uses: the fewest on the greedy curve whose error is within what is allowed.

    The error may rise by `tolerance`, or by one standard error of its difference to the full network if that is larger.
    The standard error is paired over samples.

    Args:
        greedy: The curve.
        tolerance: The largest loss of accuracy allowed, as a fraction: 0.001 is 0.1 %; of a regression, of R2.

    Returns:
        The layers that are kept, the idle ones, and the 95 % interval of their number.

    Example:
        >>> from verydeep.analysis import depth_usage, greedy_lesions
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits", validation=0.2)
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> usage = depth_usage(greedy_lesions(model, data.valid, "valid", train=data.train))
        >>> usage
        <DepthUsage: ... of 3 layers (95 % interval ... to ...) used within ... accuracy... of the validation set; ...>
        >>> usage.training  # the same order on the training samples, as in the paper
        <DepthUsage: ... of 3 layers (95 % interval ... to ...) used within ... accuracy... of the training set; ...>
    """
    if not isinstance(greedy, GreedyLesion):
        raise UserError(f"depth_usage needs the result of greedy_lesions, got {type(greedy).__name__}")
    if not 0 <= tolerance < 1:
        raise UserError(f"tolerance must be at least 0 and less than 1, such as 0.001 for 0.1 %; got {tolerance}")
    return DepthUsage.of(greedy, tolerance)


def _check_layers(layers: Collection[int], depth: int) -> None:
    wrong = sorted(layer for layer in layers if not 0 <= layer < depth)
    if wrong:
        raise UserError(f"there is no layer {wrong[0]}: layers are numbered 0 to {depth - 1}")


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
    points, errors = evaluate_closed(subject, [frozenset(order[:closed]) for closed in range(len(order) + 1)], progress)
    rises = np.stack([(each - errors[0]).numpy().astype(np.float32) for each in errors], axis=1)
    return GreedyLesion(
        subject.model.layers,
        split,
        points[-1].samples,
        order,
        loss=np.array([point.loss for point in points]),
        error=np.array([point.error for point in points]),
        measure=subject.objective.measure,
        standard_error=standard_errors(rises),
        draws=bootstrap_means(rises),
    )


def _choosing_done(closed: int, count: int) -> float:
    """The fraction of the selection that is done: comparisons get cheaper with every closed layer."""
    return 1 - (1 - min(closed / count, 1)) ** 3
