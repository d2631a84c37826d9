"""Forward passes that reuse the outputs of another pass: everything before a closed layer is the same without it."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from verydeep.analysis.blocks._blocks import BlockGroup, Closed, ForwardMode, Group, InstrumentedModel, LayerGroup
from verydeep.analysis.blocks._trees import map_leaves
from verydeep.nn import HighwayStack, ResidualStack
from verydeep.objectives import Inputs, batch_length

_MEMORY = 2**26  # bytes that one cached batch may take: feature maps are faster in batches that fit into caches
_LARGEST = 2000  # samples per batch; the outputs of larger batches do not fit into the processor's cache


class CachingMode(ForwardMode):
    """Keeps the output of every module up to the last group, and the input of every layer of a stack.

    Args:
        closed: The layers that are closed.
        last: The last group; what comes after it is never reused.
    """

    def __init__(self, closed: Closed = frozenset(), last: Group | None = None) -> None:
        super().__init__(closed)
        self.last, self.passed = last, False
        self.size = 0  # bytes of all outputs
        self.outputs: list[Any] = []
        self.inputs: dict[LayerGroup, list[Tensor]] = {}

    def highway(self, group: LayerGroup, x: Tensor) -> Tensor:
        if not isinstance(group.module, HighwayStack | ResidualStack):
            return self._keep(super().highway(group, x), group)  # type: ignore[no-any-return]
        states = group.module.states(x.clone(), group.own(self.closed))  # the model may change x in place
        self.inputs[group] = states
        self.size += sum(map(_bytes, states))
        return self._keep(states[-1].clone(), group)  # type: ignore[no-any-return]

    def block(self, group: BlockGroup, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401
        return self._keep(super().block(group, args, kwargs), group)

    def other(self, run: Any) -> Any:  # noqa: ANN401
        return self._keep(run())

    def _keep(self, value: Any, group: Group | None = None) -> Any:  # noqa: ANN401
        self.size += _bytes(value)
        if not self.passed:
            self.outputs.append(_copied(value))
        self.passed |= group is not None and group is self.last
        return value


class ReplayMode(ForwardMode):
    """One more layer closed than in a cached pass; modules before that layer return their cached outputs."""

    def __init__(self, cache: CachingMode, group: Group, layer: int) -> None:
        super().__init__(cache.closed | {layer})
        self.cache, self.group, self.layer = cache, group, layer
        self.outputs = iter(cache.outputs)
        self.reached = False

    def highway(self, group: LayerGroup, x: Tensor) -> Tensor:
        if self.reached:
            return super().highway(group, x)
        if group is not self.group:
            return _copied(next(self.outputs))  # type: ignore[no-any-return]
        self.reached = True
        if not isinstance(group.module, HighwayStack | ResidualStack):
            return super().highway(group, x)
        own = self.layer - group.first
        x = self.cache.inputs[group][own]  # the closed layer copies it
        y: Tensor = group.forward(x, group.own(self.closed), own + 1)
        return y.clone() if y is x else y

    def block(self, group: BlockGroup, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401
        if not self.reached and group is not self.group:
            return _copied(next(self.outputs))
        self.reached = True
        return super().block(group, args, kwargs)

    def other(self, run: Any) -> Any:  # noqa: ANN401
        return run() if self.reached else _copied(next(self.outputs))


class _ReplayUnchanged(ReplayMode):
    """Closes no further layer, but reuses everything before the last group."""

    def __init__(self, cache: CachingMode, group: Group) -> None:
        super().__init__(cache, group, group.first)
        self.closed = cache.closed

    def highway(self, group: LayerGroup, x: Tensor) -> Tensor:
        self.reached |= group is self.group
        return super().highway(group, x)


def can_replay(model: InstrumentedModel, x: Inputs) -> bool:
    """Whether reuse is exact; it is not if the model changes a tensor in place after a module returned it."""
    cache = CachingMode()
    logits = model.run(cache, x)
    return torch.equal(logits, model.run(_ReplayUnchanged(cache, model.groups[-1]), x))


def batch_size(model: InstrumentedModel, x: Inputs) -> int:
    """How many samples like those of x to compute together so that their cached outputs fit into memory."""
    cache = CachingMode()
    model.run(cache, x)
    return max(1, min(_LARGEST, _MEMORY * batch_length(x) // max(cache.size, 1)))


def _copied(value: Any) -> Any:  # noqa: ANN401
    """A copy that the model may change in place."""
    return map_leaves(lambda _, leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf, value)


def _bytes(value: Any) -> int:  # noqa: ANN401
    return value.numel() * value.element_size() if isinstance(value, Tensor) else 0
