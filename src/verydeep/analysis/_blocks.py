"""What can be closed in a model, and forward passes in which layers are closed, recorded or skipped.

`InstrumentedModel` is a copy of a model that shares its weights. Each of its highway layers, and each module without
highway layers, asks a `ForwardMode` what to do. The user's model is never touched, so several analyses can run on one
model at the same time.
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
class LayerGroup:
    """A module with one highway layer or a stack of them, and the module's original forward.

    Attributes:
        name: The module's name in the model.
        module: The module.
        forward: Its forward method before the model was instrumented.
        first: The number of its first layer, in forward order.
    """

    name: str
    module: HighwayModule
    forward: Forward
    first: int = -1

    @property
    def depth(self) -> int:
        """The number of its layers."""
        return 1 if isinstance(self.module, HighwayLayer) else self.module.depth

    @property
    def layers(self) -> list[str]:
        """The names of its layers."""
        single = isinstance(self.module, HighwayLayer)
        return [self.name] if single else [f"{self.name}.{layer}" for layer in range(self.depth)]

    def own(self, closed: Closed) -> set[int]:
        """The layers of this group among `closed`, counted from the group's first layer."""
        return {layer - self.first for layer in closed if 0 <= layer - self.first < self.depth}

    def __call__(self, x: Tensor, closed: Closed = frozenset()) -> Tensor:
        """The block output with some layers closed; never x itself, because the model may change it in place."""
        own = self.own(closed)
        y: Tensor = self.forward(x, bool(own) if isinstance(self.module, HighwayLayer) else own)
        return y.clone() if own and y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() else y


class ForwardMode:
    """How one forward pass is computed: here with some layers closed; subclasses record or reuse outputs."""

    def __init__(self, closed: Closed = frozenset()) -> None:
        self.closed = closed

    def highway(self, group: LayerGroup, x: Tensor) -> Tensor:
        """Compute the output of a group of highway layers."""
        return group(x, self.closed)

    def other(self, run: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the user's module returns
        """Compute the output of a module without highway layers."""
        return run()


class InstrumentedModel:
    """A copy of a model that shares its weights and whose forward passes follow a `ForwardMode`.

    Args:
        model: Any model with highway layers.
        x: A few samples; layers are numbered in the order in which these samples reach them.
    """

    def __init__(self, model: nn.Module, x: Tensor) -> None:
        self.model = shadow_copy(model).eval()
        self._mode, self._inside, self._changes_input = ForwardMode(), False, False
        order = _FindOrder()
        for name, module in highway_modules(self.model):
            group = LayerGroup(name, module, module.forward)
            module.forward = partial(self._highway, group)  # type: ignore[method-assign]
        for other in _other_modules(self.model):
            other.forward = partial(self._other, other.forward)
        x = x.clone()
        version = x._version
        self._try(order, x)
        self._changes_input = x._version != version
        self.groups = self._numbered(order.reached)
        self.layers = tuple(name for group in self.groups for name in group.layers)

    def run(self, mode: ForwardMode, x: Tensor) -> Tensor:
        """The logits of one forward pass."""
        self._mode = mode
        logits = self.model(x.clone() if self._changes_input else x)
        if not isinstance(logits, Tensor) or logits.dim() != 2 or len(logits) != len(x):
            got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise UserError(f"the model must return logits of shape (batch, classes), ({len(x)}, ...) here; got {got}")
        return logits

    def group_of(self, layer: int) -> LayerGroup:
        """The group that contains a layer."""
        return next(group for group in self.groups if group.first <= layer < group.first + group.depth)

    def _highway(self, group: LayerGroup, x: Tensor, closed: bool | Collection[int] = ()) -> Tensor:
        if closed:
            raise UserError(f"the model closes '{group.name}' itself; the analysis needs all layers open")
        if self._inside:
            return group(x)
        return self._as_one(partial(self._mode.highway, group, x))  # type: ignore[no-any-return]

    def _other(self, forward: Forward, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        run = partial(forward, *args, **kwargs)
        return run() if self._inside else self._mode.other(partial(self._as_one, run))

    def _as_one(self, run: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Run a module as a whole: the modules inside it do not consult the mode, even if they are instrumented."""
        self._inside = True
        try:
            return run()
        finally:
            self._inside = False

    def _try(self, mode: ForwardMode, x: Tensor) -> None:
        """Run once and turn torch's errors about unsuitable data into one-line messages."""
        try:
            with torch.no_grad():
                self.run(mode, x)
        except UserError:
            raise
        except (RuntimeError, TypeError, IndexError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            raise UserError(f"the model does not take samples of shape {tuple(x.shape[1:])}: {reason}") from error

    def _numbered(self, reached: list[LayerGroup]) -> tuple[LayerGroup, ...]:
        """The groups with the numbers of their layers, which their modules report from now on."""
        if not reached:
            recurrent = any(isinstance(module, RecurrentHighway) for module in self.model.modules())
            why = " except inside a RecurrentHighway, which cannot be analysed" if recurrent else ""
            raise UserError(f"the forward pass of this {type(self.model).__name__} uses no highway layers{why}")
        numbered: list[LayerGroup] = []
        for group in reached:
            first = numbered[-1].first + numbered[-1].depth if numbered else 0
            numbered.append(LayerGroup(group.name, group.module, group.forward, first))
            group.module.forward = partial(self._highway, numbered[-1])  # type: ignore[method-assign]
        return tuple(numbered)


class _FindOrder(ForwardMode):
    """Notes the order in which groups are reached."""

    def __init__(self) -> None:
        super().__init__()
        self.reached: list[LayerGroup] = []

    def highway(self, group: LayerGroup, x: Tensor) -> Tensor:
        if group in self.reached:
            raise UserError(
                f"'{group.name}' is applied more than once; the analysis needs each highway layer only once"
            )
        self.reached.append(group)
        return super().highway(group, x)


def shadow_copy(model: nn.Module) -> nn.Module:
    """A copy that shares parameters and buffers with the model, but no modules."""
    model = getattr(model, "_orig_mod", model)  # the original of a compiled model
    tensors = [value for module in model.modules() for value in vars(module).values() if isinstance(value, Tensor)]
    memo: dict[int, Any] = {id(value): value for value in (*model.parameters(), *model.buffers(), *tensors)}
    try:
        return copy.deepcopy(model, memo)
    except (TypeError, RuntimeError) as error:
        raise UserError(f"this {type(model).__name__} cannot be copied, which the analysis needs: {error}") from error


def highway_modules(module: nn.Module) -> Iterator[tuple[str, HighwayModule]]:
    """Highway layers and stacks that are not inside another one, each once, with their names."""
    inside: set[int] = set()
    for name, child in module.named_modules():
        if isinstance(child, HighwayModule) and id(child) not in inside:
            yield name, child
        if isinstance(child, HighwayModule | RecurrentHighway):
            inside |= {id(inner) for inner in child.modules()}


def _other_modules(module: nn.Module) -> list[nn.Module]:
    """The largest modules without highway layers that are not inside a highway layer."""
    found: dict[int, nn.Module] = {}
    for child in module.children():
        if isinstance(child, HighwayModule):
            continue
        if isinstance(child, nn.ModuleList | nn.ModuleDict) or next(highway_modules(child), None) is not None:
            found |= {id(inner): inner for inner in _other_modules(child)}
        else:
            found[id(child)] = child
    return list(found.values())
