"""Passes that reuse what another pass has computed: everything below a lesion is the same with and without it."""

from typing import Any

import torch
from torch import Tensor

from verydeep.analysis._view import Closed, Pass, Unit, View
from verydeep.nn import HighwayStack

_MEMORY = 2**26  # bytes that one recorded batch may take: feature maps are faster in batches that fit into caches
_LARGEST = 2000  # samples of a batch; larger records fall out of the cache


class Record(Pass):
    """Keeps what every module returned, and the input of every layer of a stack."""

    def __init__(self, closed: Closed = frozenset()) -> None:
        super().__init__(closed)
        self.outputs: list[Any] = []
        self.inputs: dict[Unit, list[Tensor]] = {}

    def highway(self, unit: Unit, x: Tensor) -> Tensor:
        if not isinstance(unit.module, HighwayStack):
            return self._keep(super().highway(unit, x))  # type: ignore[no-any-return]
        states = unit.module.states(x.clone(), unit.own(self.closed))  # the model may change x in place
        self.inputs[unit] = states
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


class Replay(Pass):
    """One layer more closed than in a record: modules before it return what they returned there."""

    def __init__(self, record: Record, unit: Unit, layer: int) -> None:
        super().__init__(record.closed | {layer})
        self.record, self.unit, self.layer = record, unit, layer
        self.kept = iter(record.outputs)
        self.reached = False

    def highway(self, unit: Unit, x: Tensor) -> Tensor:
        if self.reached:
            return super().highway(unit, x)
        if unit is not self.unit:
            return _copied(next(self.kept))  # type: ignore[no-any-return]
        self.reached = True
        if not isinstance(unit.module, HighwayStack):
            return super().highway(unit, x)
        own = self.layer - unit.first
        x = self.record.inputs[unit][own]  # the closed layer copies it
        y: Tensor = unit.forward(x, unit.own(self.closed), own + 1)
        return y.clone() if y is x else y

    def other(self, run: Any) -> Any:  # noqa: ANN401
        return run() if self.reached else _copied(next(self.kept))


class _Nothing(Replay):
    """Nothing more is closed, but what comes before the last unit is not computed again."""

    def __init__(self, record: Record, unit: Unit) -> None:
        super().__init__(record, unit, unit.first)
        self.closed = record.closed

    def highway(self, unit: Unit, x: Tensor) -> Tensor:
        self.reached |= unit is self.unit
        return super().highway(unit, x)


def can_replay(view: View, x: Tensor) -> bool:
    """Whether reuse gives what the model gives; not if it changes tensors in place behind its modules' backs."""
    record = Record()
    logits = view.run(record, x)
    return torch.equal(logits, view.run(_Nothing(record, view.units[-1]), x))


def batch_size(view: View, x: Tensor) -> int:
    """How many samples like those of x to look at together, so that a record fits into memory."""
    record = Record()
    view.run(record, x)
    return max(1, min(_LARGEST, _MEMORY * len(x) // max(record.size(), 1)))


def _copied(value: Any) -> Any:  # noqa: ANN401
    """A copy that the model may change in place."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_copied(item) for item in value)
    return value
