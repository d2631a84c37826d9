"""Closing and swapping random sets of layers, as Veit et al. (2016) do with residual networks.

Networks whose layers build on each other fall apart when a few are missing or in another order; ensembles of shallow
paths degrade smoothly.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from verydeep.analysis._data import Data, ModelAndData, Progress
from verydeep.analysis.blocks._blocks import BlockGroup, ForwardMode, Group, InstrumentedModel, LayerGroup
from verydeep.analysis.blocks._find_blocks import Blocks
from verydeep.analysis.lesions._lesion_results import Score
from verydeep.analysis.lesions._random_results import RandomChanges
from verydeep.cpu import cpu_settings
from verydeep.errors import UserError
from verydeep.nn import HighwayLayer
from verydeep.objectives import Objective, Totals, evaluate_batches

Order = NDArray[np.int64]  # which layer is applied in the place of each; -1 closes it
_CLOSED = -1


@cpu_settings()
def random_lesions(
    model: nn.Module,
    data: Data,
    counts: Sequence[int],
    draws: int = 5,
    seed: int = 0,
    split: str = "",
    progress: Progress | None = None,
    *,
    layers: Collection[int] | None = None,
    objective: Objective | None = None,
    blocks: Blocks = None,
) -> RandomChanges:
    """Close random sets of layers and measure the network; one pass per count and draw.

    Args:
        model: Any model with highway layers or residual blocks; it is not changed.
        data: A pair `(x, y)` of arrays or tensors, a split of a `Dataset`, or batches.
        counts: How many layers to close.
        draws: How many random sets of each size are drawn.
        seed: Determines the sets.
        split: What the result calls the data.
        progress: Called with the fraction of the work that is done.
        layers: Which layers may be closed; by default, all.
        objective: What is measured; by default, the task of a split. Without a task, whole numbers are classes and
            fractions the targets of a regression.
        blocks: What is closed: the result of `find_blocks`, or patterns of names, such as `encoder.layer.*`. By
            default, highway layers and the residual blocks that `find_blocks` finds.

    Returns:
        Loss and error of every draw.

    Example:
        >>> from verydeep.analysis import random_lesions
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=5, width=16, input_shape=(1, 8, 8))
        >>> random_lesions(model, data.test, [1, 2, 3], draws=2, split="test")
        <RandomChanges: 4 layers, 359 samples of the test set; error ..., and ... with 3 random layers closed ...>
    """
    subject = ModelAndData.of(model, data, objective, blocks)
    depth = len(subject.model.layers)
    candidates = _allowed(layers, depth)

    def draw(count: int, generator: np.random.Generator) -> Order:
        order = np.arange(depth)
        order[generator.permutation(candidates)[:count]] = _CLOSED
        return order

    _check_counts(counts, len(candidates), f"there are {len(candidates)} layers to close")
    return _measure(subject, "closed", counts, draws, draw, seed, split, progress)


@cpu_settings()
def reorder_study(
    model: nn.Module,
    data: Data,
    counts: Sequence[int],
    draws: int = 5,
    seed: int = 0,
    split: str = "",
    progress: Progress | None = None,
    *,
    layers: Collection[int] | None = None,
    objective: Objective | None = None,
    blocks: Blocks = None,
) -> RandomChanges:
    """Swap random pairs of layers and measure the network; one pass per count and draw.

    Two layers can be swapped if they are of the same class and pass on tensors of the same shape, such as the blocks of
    one stage of a ResNet. The pairs of a draw are disjoint, so that every swapped layer is in another place.

    Args:
        model: Any model with highway layers or residual blocks; it is not changed.
        data: A pair `(x, y)` of arrays or tensors, a split of a `Dataset`, or batches.
        counts: How many layers to swap, an even number each; 0 is the unchanged network.
        draws: How many random reorderings of each size are drawn.
        seed: Determines the reorderings.
        split: What the result calls the data.
        progress: Called with the fraction of the work that is done.
        layers: Which layers may be swapped; by default, all.
        objective: What is measured; by default, the task of a split. Without a task, whole numbers are classes and
            fractions the targets of a regression.
        blocks: What is swapped: the result of `find_blocks`, or patterns of names, such as `encoder.layer.*`. By
            default, highway layers and the residual blocks that `find_blocks` finds.

    Returns:
        Loss and error of every draw, and the order of the layers in each.

    Example:
        >>> from verydeep.analysis import reorder_study
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=5, width=16, input_shape=(1, 8, 8))
        >>> found = reorder_study(model, data.test, [0, 2, 4], draws=2, split="test")
        >>> bool((found.error[0] == found.baseline.error).all())
        True
        >>> (found.order != range(4)).sum(-1).tolist()  # how many layers are in another place
        [[0, 0], [2, 2], [4, 4]]
    """
    subject = ModelAndData.of(model, data, objective, blocks)
    allowed = _allowed(layers, len(subject.model.layers))
    groups = [[layer for layer in group if layer in allowed] for group in _exchangeable(subject)]
    most = 2 * sum(len(group) // 2 for group in groups)
    odd = [count for count in counts if count % 2]
    if odd:
        raise UserError(f"layers are swapped in pairs, so their number must be even; got {odd[0]}")
    _check_counts(counts, most, f"at most {most} layers can be swapped with another of the same class and shape")

    def draw(count: int, generator: np.random.Generator) -> Order:
        return _swapped(len(subject.model.layers), groups, count // 2, generator)

    return _measure(subject, "swapped", counts, draws, draw, seed, split, progress)


def _allowed(layers: Collection[int] | None, depth: int) -> list[int]:
    wrong = [layer for layer in layers or () if not 0 <= layer < depth]
    if wrong:
        raise UserError(f"there is no layer {wrong[0]}: layers are numbered 0 to {depth - 1}")
    return list(range(depth)) if layers is None else sorted(set(layers))


def _check_counts(counts: Sequence[int], most: int, why: str) -> None:
    if not counts:
        raise UserError("counts is empty; say how many layers to change, such as counts=[1, 2, 4]")
    wrong = [count for count in counts if not 0 <= count <= most]
    if wrong:
        raise UserError(f"counts must be between 0 and {most}, because {why}; got {wrong[0]}")


def _swapped(depth: int, groups: Sequence[Sequence[int]], pairs: int, generator: np.random.Generator) -> Order:
    """An order with some disjoint pairs swapped; each pair is drawn from all that are left."""
    order, left = np.arange(depth), [list(group) for group in groups]
    for _ in range(pairs):
        weights = np.array([len(group) * (len(group) - 1) for group in left], float)
        group = left[int(generator.choice(len(left), p=weights / weights.sum()))]
        first, second = (group.pop(int(generator.integers(len(group)))) for _ in range(2))
        order[first], order[second] = second, first
    return order


def _exchangeable(subject: ModelAndData) -> list[list[int]]:
    """Layers that can take each other's place."""
    shapes = _Shapes()
    with torch.no_grad():
        subject.model.run(shapes, subject.first(2))
    found: dict[Any, list[int]] = defaultdict(list)
    for group in subject.model.groups:
        key = shapes.keys.get(group.first)
        if key is not None:
            found[key] += range(group.first, group.first + group.depth)
    return list(found.values())


class _Shapes(ForwardMode):
    """Notes the class and the shape of every layer that keeps the shape of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[int, tuple[Any, ...]] = {}

    def highway(self, group: LayerGroup, x: Tensor) -> Tensor:
        y = super().highway(group, x)
        if y.shape == x.shape:
            self.keys[group.first] = (type(group.module), tuple(x.shape))
        return y

    def block(self, group: BlockGroup, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401
        self.keys[group.first] = (type(group.module), group.block.kind, group.block.shape)
        return super().block(group, args, kwargs)


class ReorderedMode(ForwardMode):
    """Applies other layers in the places of some, and closes some.

    Args:
        model: The model.
        order: Which layer is applied in the place of each; -1 closes it.
    """

    def __init__(self, model: InstrumentedModel, order: Order) -> None:
        super().__init__(frozenset(np.flatnonzero(order == _CLOSED).tolist()))
        self.order = order
        self.groups: dict[int, Group] = {
            layer: group for group in model.groups for layer in range(group.first, group.first + group.depth)
        }

    def highway(self, group: LayerGroup, x: Tensor) -> Tensor:
        places = range(group.first, group.first + group.depth)
        if all(self.order[place] in (place, _CLOSED) for place in places):
            return super().highway(group, x)
        for place in places:
            x = self._apply(int(self.order[place]), x)
        return x

    def _apply(self, layer: int, x: Tensor) -> Tensor:
        if layer == _CLOSED:
            return x.clone()  # the model may change it in place
        group = self.groups[layer]
        assert isinstance(group, LayerGroup)
        others = frozenset(range(group.first, group.first + group.depth)) - {layer}
        return group(x) if isinstance(group.module, HighwayLayer) else group(x, others)

    def block(self, group: BlockGroup, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401
        layer = int(self.order[group.first])
        if layer in (group.first, _CLOSED):
            return super().block(group, args, kwargs)
        other = self.groups[layer]
        assert isinstance(other, BlockGroup)
        return other(args, kwargs)


def _measure(
    subject: ModelAndData,
    change: str,
    counts: Sequence[int],
    draws: int,
    draw: Callable[[int, np.random.Generator], Order],
    seed: int,
    split: str,
    progress: Progress | None,
) -> RandomChanges:
    if draws < 1:
        raise UserError(f"draws must be at least 1, got {draws}")
    orders = np.stack(
        [[draw(count, np.random.default_rng((seed, count, number))) for number in range(draws)] for count in counts]
    )
    whole = _evaluate(subject, np.arange(len(subject.model.layers)))
    loss, error = np.empty((2, len(counts), draws))
    for done, place in enumerate(np.ndindex(len(counts), draws), 1):
        totals = _evaluate(subject, orders[place])
        loss[place], error[place] = totals.loss, totals.error
        if progress is not None:
            progress(done / loss.size)
    baseline = Score(whole.loss, whole.error, subject.objective.measure)
    return RandomChanges(
        subject.model.layers, split, whole.samples, baseline, change, np.array(counts), loss, error, orders
    )


def _evaluate(subject: ModelAndData, order: Order) -> Totals:
    forward = partial(subject.model.run, ReorderedMode(subject.model, order))
    return evaluate_batches(forward, subject.batches(), subject.objective, device=subject.device)
