"""A view of a model: a twin with the same weights whose highway layers can be watched, closed and started from.

The model itself is never touched, so several analyses can look at one model at the same time, and whoever uses it
meanwhile notices nothing. What a forward pass does is said by a `Pass`.
"""

import copy
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.nn import HighwayLayer, HighwayStack, LSTMHighway, RecurrentHighway

Forward = Callable[..., Any]
Closed = frozenset[int]
HighwayModule = HighwayLayer | HighwayStack | LSTMHighway


@dataclass(frozen=True, eq=False)
class Unit:
    """A module of highway layers, a single one or a stack, and the module's own forward."""

    name: str
    module: HighwayModule
    forward: Forward
    first: int = -1  # the number of its first layer, in the order of the data

    @property
    def depth(self) -> int:
        """How many layers it has."""
        return 1 if isinstance(self.module, HighwayLayer) else self.module.depth

    @property
    def layers(self) -> list[str]:
        """The layers' names."""
        single = isinstance(self.module, HighwayLayer)
        return [self.name] if single else [f"{self.name}.{layer}" for layer in range(self.depth)]

    def own(self, closed: Closed) -> set[int]:
        """Which of its layers are closed, counted from its first."""
        return {layer - self.first for layer in closed if 0 <= layer - self.first < self.depth}

    def __call__(self, x: Tensor, closed: Closed = frozenset()) -> Tensor:
        """The block output, with layers closed; a copy where it is x, which the model may change in place."""
        own = self.own(closed)
        y: Tensor = self.forward(x, bool(own) if isinstance(self.module, HighwayLayer) else own)
        return y.clone() if own and y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() else y


class Pass:
    """One forward pass with some layers closed; subclasses watch it or take short cuts."""

    def __init__(self, closed: Closed = frozenset()) -> None:
        self.closed = closed

    def highway(self, unit: Unit, x: Tensor) -> Tensor:
        """What a unit does."""
        return unit(x, self.closed)

    def other(self, run: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the user's module returns
        """What a module without highway layers does."""
        return run()


class View:
    """A twin of a model.

    Args:
        model: Anything with highway layers that returns logits.
        x: A few samples: the order of the layers is that in which they are reached.
    """

    def __init__(self, model: nn.Module, x: Tensor) -> None:
        self.model = twin(model).eval()
        self._now, self._inside, self._spoils = Pass(), False, False
        order = _Order()
        for name, module in units(self.model):
            unit = Unit(name, module, module.forward)
            module.forward = partial(self._highway, unit)  # type: ignore[method-assign]
        for other in _others(self.model):
            other.forward = partial(self._other, other.forward)
        x = x.clone()
        version = x._version
        _try(self, order, x)
        self._spoils = x._version != version
        self.units = order.numbered(self)
        self.layers = tuple(name for unit in self.units for name in unit.layers)

    def run(self, how: Pass, x: Tensor) -> Tensor:
        """The logits of one pass."""
        self._now = how
        logits = self.model(x.clone() if self._spoils else x)
        if not isinstance(logits, Tensor) or logits.dim() != 2 or len(logits) != len(x):
            got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise UserError(f"the model must return logits of shape (batch, classes), ({len(x)}, ...) here; got {got}")
        return logits

    def unit(self, layer: int) -> Unit:
        """Where a layer is."""
        return next(unit for unit in self.units if unit.first <= layer < unit.first + unit.depth)

    def rename(self, unit: Unit, numbered: Unit) -> None:
        """From now on report the module as `numbered`."""
        unit.module.forward = partial(self._highway, numbered)  # type: ignore[method-assign]

    def _highway(self, unit: Unit, x: Tensor, closed: bool | Collection[int] = ()) -> Tensor:
        if closed:
            raise UserError(f"the model closes '{unit.name}' itself; the analysis needs all layers open")
        if self._inside:
            return unit(x)
        return self._alone(partial(self._now.highway, unit, x))  # type: ignore[no-any-return]

    def _other(self, forward: Forward, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        run = partial(forward, *args, **kwargs)
        return run() if self._inside else self._now.other(partial(self._alone, run))

    def _alone(self, run: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Modules inside a module are part of it, even where they are known by themselves."""
        self._inside = True
        try:
            return run()
        finally:
            self._inside = False


class _Order(Pass):
    """Notes which unit is reached when."""

    def __init__(self) -> None:
        super().__init__()
        self.reached: list[Unit] = []

    def highway(self, unit: Unit, x: Tensor) -> Tensor:
        if unit in self.reached:
            raise UserError(f"'{unit.name}' is applied more than once; the analysis needs each highway layer only once")
        self.reached.append(unit)
        return super().highway(unit, x)

    def numbered(self, view: View) -> tuple[Unit, ...]:
        if not self.reached:
            recurrent = any(isinstance(module, RecurrentHighway) for module in view.model.modules())
            why = "; those of a RecurrentHighway cannot be seen" if recurrent else ", so there is nothing to look at"
            raise UserError(f"the data passes no highway layers in this {type(view.model).__name__}{why}")
        numbered: list[Unit] = []
        for unit in self.reached:
            first = numbered[-1].first + numbered[-1].depth if numbered else 0
            numbered.append(Unit(unit.name, unit.module, unit.forward, first))
            view.rename(unit, numbered[-1])
        return tuple(numbered)


def twin(model: nn.Module) -> nn.Module:
    """A copy that shares parameters and buffers, but no modules."""
    model = getattr(model, "_orig_mod", model)  # what torch.compile was given
    tensors = [value for module in model.modules() for value in vars(module).values() if isinstance(value, Tensor)]
    memo: dict[int, Any] = {id(value): value for value in (*model.parameters(), *model.buffers(), *tensors)}
    try:
        return copy.deepcopy(model, memo)
    except (TypeError, RuntimeError) as error:
        raise UserError(f"this {type(model).__name__} cannot be copied, which the analysis needs: {error}") from error


def units(module: nn.Module) -> Iterator[tuple[str, HighwayModule]]:
    """Highway layers and stacks that are not inside another one, each once, with their names."""
    inside: set[int] = set()
    for name, child in module.named_modules():
        if isinstance(child, HighwayModule) and id(child) not in inside:
            yield name, child
        if isinstance(child, HighwayModule | RecurrentHighway):
            inside |= {id(inner) for inner in child.modules()}


def _others(module: nn.Module) -> list[nn.Module]:
    """The largest modules without highway layers, those inside highway layers left out."""
    found: dict[int, nn.Module] = {}
    for child in module.children():
        if isinstance(child, HighwayModule):
            continue
        if isinstance(child, nn.ModuleList | nn.ModuleDict) or next(units(child), None) is not None:
            found |= {id(inner): inner for inner in _others(child)}
        else:
            found[id(child)] = child
    return list(found.values())


def _try(view: View, order: _Order, x: Tensor) -> None:
    """Whatever torch says of data that does not fit is said in one line."""
    try:
        with torch.no_grad():
            view.run(order, x)
    except UserError:
        raise
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"the model does not take samples of shape {tuple(x.shape[1:])}: {reason}") from error
