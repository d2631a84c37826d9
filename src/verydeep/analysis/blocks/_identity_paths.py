"""Which values are computed by adding to which: the identity paths of one forward pass.

A residual block computes `y = x + f(x)`. `IdentityPaths` watches every operation that torch dispatches, so that it does
not matter how a module writes the addition (`x + f`, `f += x`, `torch.add`). It knows of every tensor which earlier
tensors it still contains, and through which additions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from verydeep.analysis.blocks._trees import leaves

_aten = torch.ops.aten
_ADDITIONS = (_aten.add, _aten.add_)
_SUBTRACTIONS = (_aten.sub, _aten.sub_, _aten.addcmul, _aten.addcmul_)  # only their first argument is carried
_COPIES = (_aten.clone, _aten._to_copy, _aten.copy_)
_RELUS = (_aten.relu, _aten.relu_)
_CLAMPS = (_aten.hardtanh, _aten.hardtanh_, _aten.clamp, _aten.clamp_, _aten.clamp_min, _aten.clamp_min_)
_NORMS = (
    _aten.native_layer_norm,
    _aten.native_group_norm,
    _aten.native_batch_norm,
    _aten._native_batch_norm_legit_no_training,
)
_Layout = tuple[int, tuple[tuple[int, int], ...]]


@dataclass(frozen=True)
class Addition:
    """One addition on an identity path.

    Attributes:
        number: Its number among all additions of the pass, in order.
        branch: The name of the module that computed what is added; None if no module returned it.
    """

    number: int
    branch: str | None


@dataclass(frozen=True)
class IdentityPath:
    """How one tensor contains another.

    Attributes:
        additions: The additions on the way, in order.
        normalised: Whether the sum was normalised on the way, so that it does not contain the tensor unchanged.
        clamped: Whether a ReLU or another clamp on the way changed the tensor.
    """

    additions: tuple[Addition, ...] = ()
    normalised: bool = False
    clamped: bool = False

    @property
    def exact(self) -> bool:
        """Whether the tensor is contained unchanged."""
        return not (self.normalised or self.clamped)


@dataclass(frozen=True)
class FinalSum:
    """The last addition that made a tensor, up to activation, normalisation and scale.

    Attributes:
        number: Its number among all additions of the pass.
        common: The marked tensors that both terms were computed from, as bits.
    """

    number: int
    common: int


@dataclass
class _Value:
    """What is known about the content of some memory.

    Attributes:
        paths: The marked tensors that it contains, by their numbers.
        depends: The marked tensors that it was computed from, as bits.
        producer: The module that returned it, or returned what it is a multiple of.
        mark: Its own number, if it is marked.
        final_sum: The addition that made it, if one did.
    """

    paths: dict[int, IdentityPath] = field(default_factory=dict)
    depends: int = 0
    producer: str | None = None
    mark: int | None = None
    final_sum: FinalSum | None = None


class IdentityPaths(TorchDispatchMode):
    """Watches the operations of a forward pass; tensors are marked by `mark`, and `paths` finds marked ones in others.

    All tensors of the pass stay in memory until the object is deleted.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._values: dict[_Layout, _Value] = {}
        self._by_storage: dict[int, list[_Layout]] = {}
        self._ranges: list[tuple[float, float]] = []
        self._additions = 0
        self._alive: list[Tensor] = []

    def mark(self, tensor: Tensor) -> int:
        """Give the present content of a tensor a number, always the same until the content changes."""
        value = self._value(tensor)
        if value.mark is None:
            value.mark = len(self._ranges)
            value.paths[value.mark] = IdentityPath()
            value.depends |= 1 << value.mark
            low, high = (float(end) for end in tensor.detach().aminmax())
            self._ranges.append((low, high))
        return value.mark

    def paths(self, tensor: Tensor) -> dict[int, IdentityPath]:
        """The marked tensors that a tensor contains, by their numbers."""
        return self._value(tensor).paths

    def sums_results_of(self, tensor: Tensor, mark: int) -> int | None:
        """The number of the addition that made a tensor from two results of a marked one; None if none did."""
        found = self._value(tensor).final_sum
        return found.number if found is not None and found.common >> mark & 1 else None

    def set_producer(self, tensor: Tensor, module: str) -> None:
        """Note which module returned a tensor."""
        self._value(tensor).producer = module

    def same_content(self, first: Tensor, second: Tensor) -> bool:
        """Whether two tensors are the same memory, read in the same order."""
        return _layout(first) == _layout(second)

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401
        types: Any,  # noqa: ANN401
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        out = func(*args, **(kwargs or {}))
        self._note(func, args, kwargs or {}, out)
        return out

    def _note(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> None:  # noqa: ANN401
        """Note what an operation returned."""
        inputs = [value for _, value in leaves((args, kwargs)) if _is_tracked(value)]
        outputs = [value for _, value in leaves(out) if _is_tracked(value)]
        depends = 0
        for tensor in inputs:
            known = self._values.get(_layout(tensor))
            depends |= 0 if known is None else known.depends
        changes = func._schema.is_mutable
        first = self._result(func, args, kwargs, outputs[0]) if outputs else _Value()
        if changes:
            self._forget(_written(func, args, kwargs), depends)
        for number, tensor in enumerate(outputs):
            if not changes and _layout(tensor) in self._values:  # a view of the same memory in the same order
                continue
            self._put(tensor, replace(first if number == 0 else _Value(), depends=depends))

    def _result(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Tensor) -> _Value:  # noqa: ANN401
        """What the first output of an operation contains; `depends` is not set."""
        operation = func.overloadpacket
        if operation in _ADDITIONS or operation in _SUBTRACTIONS:
            both = operation in _ADDITIONS and kwargs.get("alpha", 1) == 1
            return _Value(self._sum(args, both, out), final_sum=self._final_sum(args))
        if operation in _COPIES:
            source = args[1] if operation is _aten.copy_ else args[0]
            carried = self._carried(source, out)
            return _Value(dict(carried.paths), producer=carried.producer, final_sum=carried.final_sum)
        if operation in _RELUS or operation in _CLAMPS:
            low, high = (0.0, None) if operation in _RELUS else _limits(func, args)
            carried = self._carried(args[0], out)
            paths = {
                n: path if self._is_within(n, low, high) else replace(path, clamped=True)
                for n, path in carried.paths.items()
            }
            return _Value(paths, final_sum=carried.final_sum)
        if operation in _NORMS:
            carried = self._carried(args[0], out)
            paths = {n: replace(path, normalised=True) for n, path in carried.paths.items()}
            return _Value(paths, final_sum=carried.final_sum)
        if operation in (_aten.mul, _aten.mul_):  # such as layer scale: zero stays zero
            factors = [self._value(each) for each in args[:2] if _is_tracked(each)]
            named = [factor.producer for factor in factors if factor.producer is not None]
            sums = [factor.final_sum for factor in factors if factor.final_sum is not None]
            return _Value(producer=named[0] if len(named) == 1 else None, final_sum=sums[0] if len(sums) == 1 else None)
        return _Value()

    def _sum(self, terms: Sequence[Any], both: bool, out: Tensor) -> dict[int, IdentityPath]:
        """The paths of a sum: those of each term, prolonged; not those of both, and not those of added constants."""
        number, self._additions = self._additions, self._additions + 1
        tensors = [value for value in terms if _is_tracked(value)]
        paths: dict[int, IdentityPath] = {}
        for place, tensor in enumerate(tensors if both else tensors[:1]):
            others = [self._value(each) for each in (*tensors[:place], *tensors[place + 1 :])]
            branch = others[0].producer if len(others) == 1 else None
            for mark, path in self._carried(tensor, out).paths.items():
                twice = any(mark in other.paths and other.paths[mark].exact for other in others)
                used = any(other.depends >> mark & 1 for other in others)
                if used and not twice:
                    paths[mark] = replace(path, additions=(*path.additions, Addition(number, branch)))
        return paths

    def _final_sum(self, terms: Sequence[Any]) -> FinalSum | None:
        """The addition that `_sum` counted last, if it has two tensors that were computed from the same ones."""
        tensors = [self._value(value) for value in terms if _is_tracked(value)]
        common = tensors[0].depends & tensors[1].depends if len(tensors) == 2 else 0
        return FinalSum(self._additions - 1, common) if common else None

    def _carried(self, tensor: Any, out: Tensor) -> _Value:  # noqa: ANN401
        """What is known about an input of the output's shape and type."""
        if not _is_tracked(tensor) or tensor.shape != out.shape or tensor.dtype != out.dtype:
            return _Value()
        return self._value(tensor)

    def _is_within(self, mark: int, low: float | None, high: float | None) -> bool:
        """Whether clamping to these limits leaves the marked tensor as it was."""
        least, most = self._ranges[mark]
        return (low is None or least >= low) and (high is None or most <= high)

    def _value(self, tensor: Tensor) -> _Value:
        known = self._values.get(_layout(tensor))
        return self._put(tensor, _Value()) if known is None else known

    def _put(self, tensor: Tensor, value: _Value) -> _Value:
        layout = _layout(tensor)
        if layout not in self._values:
            self._alive.append(tensor.detach())
            self._by_storage.setdefault(tensor.untyped_storage().data_ptr(), []).append(layout)
        self._values[layout] = value
        return value

    def _forget(self, written: Sequence[Tensor], depends: int) -> None:
        """Note that the content of some memory has changed."""
        for tensor in written:
            for layout in self._by_storage.get(tensor.untyped_storage().data_ptr(), ()):
                self._values[layout] = _Value(depends=self._values[layout].depends | depends)


def _is_tracked(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, Tensor) and value.layout == torch.strided and not value.is_meta and value.numel() > 0


def _written(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Tensor]:  # noqa: ANN401
    """The tensors that an operation changes."""
    names = [
        argument.name for argument in func._schema.arguments if argument.alias_info and argument.alias_info.is_write
    ]
    given = dict(zip((argument.name for argument in func._schema.arguments), args, strict=False)) | kwargs
    return [value for name in names for _, value in leaves(given.get(name)) if _is_tracked(value)]


def _layout(tensor: Tensor) -> _Layout:
    """Where the elements are, in their order; the same for views of another shape."""
    merged: list[tuple[int, int]] = []
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        if size == 1:
            continue
        if merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = (size * merged[-1][0], merged[-1][1])
        else:
            merged.append((size, stride))
    return tensor.data_ptr(), tuple(merged)


def _limits(func: Any, args: Sequence[Any]) -> tuple[float | None, float | None]:  # noqa: ANN401
    """The limits of a clamp; values that are tensors are unknown and exclude everything."""
    if func.overloadpacket in (_aten.hardtanh, _aten.hardtanh_):
        args = (*args[:1], *(args[1:] or (-1.0, 1.0)))
    ends: list[float | None] = [None, None]
    for number, end in enumerate(args[1:3]):
        ends[number] = float("inf") * (1 - 2 * number) if isinstance(end, Tensor) else end
    return ends[0], ends[1]
