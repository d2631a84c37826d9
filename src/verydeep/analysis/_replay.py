"""Forward passes that reuse the outputs of another pass: everything before a closed layer is the same without it."""

from typing import Any

import torch
from torch import Tensor

from verydeep.analysis._blocks import Closed, ForwardMode, InstrumentedModel, LayerGroup
from verydeep.nn import HighwayStack

_MEMORY = 2**26  # bytes that one cached batch may take: feature maps are faster in batches that fit into caches
_LARGEST = 2000  # samples per batch; the outputs of larger batches do not fit into the processor's cache


class CachingMode(ForwardMode):
    """Keeps the output of every module and the input of every layer of a stack."""

    def __init__(self, closed: Closed = frozenset()) -> None:
        super().__init__(closed)
        self.outputs: list[Any] = []
        self.inputs: dict[LayerGroup, list[Tensor]] = {}

    def highway(self, group: LayerGroup, x: Tensor) -> Tensor:
        if not isinstance(group.module, HighwayStack):
            return self._keep(super().highway(group, x))  # type: ignore[no-any-return]
        states = group.module.states(x.clone(), group.own(self.closed))  # the model may change x in place
        self.inputs[group] = states
        return self._keep(states[-1].clone())  # type: ignore[no-any-return]

    def other(self, run: Any) -> Any:  # noqa: ANN401
        return self._keep(run())

    def size(self) -> int:
        """Bytes kept."""
        tensors = [value for value in self.outputs if isinstance(value, Tensor)]
        tensors += [x for states in self.inputs.values() for x in states]
        return sum(value.numel() * value.element_size() for value in tensors)

    def _keep(self, value: Any) -> Any:  # noqa: ANN401
        self.outputs.append(_copied(value))
        return value


class ReplayMode(ForwardMode):
    """One more layer closed than in a cached pass; modules before that layer return their cached outputs."""

    def __init__(self, cache: CachingMode, group: LayerGroup, layer: int) -> None:
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
        if not isinstance(group.module, HighwayStack):
            return super().highway(group, x)
        own = self.layer - group.first
        x = self.cache.inputs[group][own]  # the closed layer copies it
        y: Tensor = group.forward(x, group.own(self.closed), own + 1)
        return y.clone() if y is x else y

    def other(self, run: Any) -> Any:  # noqa: ANN401
        return run() if self.reached else _copied(next(self.outputs))


class _ReplayUnchanged(ReplayMode):
    """Closes no further layer, but reuses everything before the last group."""

    def __init__(self, cache: CachingMode, group: LayerGroup) -> None:
        super().__init__(cache, group, group.first)
        self.closed = cache.closed

    def highway(self, group: LayerGroup, x: Tensor) -> Tensor:
        self.reached |= group is self.group
        return super().highway(group, x)


def can_replay(model: InstrumentedModel, x: Tensor) -> bool:
    """Whether reuse is exact; it is not if the model changes a tensor in place after a module returned it."""
    cache = CachingMode()
    logits = model.run(cache, x)
    return torch.equal(logits, model.run(_ReplayUnchanged(cache, model.groups[-1]), x))


def batch_size(model: InstrumentedModel, x: Tensor) -> int:
    """How many samples like those of x to compute together so that their cached outputs fit into memory."""
    cache = CachingMode()
    model.run(cache, x)
    return max(1, min(_LARGEST, _MEMORY * len(x) // max(cache.size(), 1)))


def _copied(value: Any) -> Any:  # noqa: ANN401
    """A copy that the model may change in place."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_copied(item) for item in value)
    return value
