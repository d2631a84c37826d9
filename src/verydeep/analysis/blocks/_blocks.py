"""Forward passes in which layers are closed, recorded or skipped.

`InstrumentedModel` is a copy of a model that shares its weights. Each of its highway layers and other blocks, and each
module without blocks, asks a `ForwardMode` what to do. The user's model is never touched, so several analyses can run
on one model at the same time.
"""

import copy
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from verydeep.analysis.blocks._block import Block
from verydeep.analysis.blocks._trees import leaves
from verydeep.errors import UserError
from verydeep.nn import HighwayLayer, HighwayStack, LSTMHighway, RecurrentHighway, ResidualStack
from verydeep.objectives import Classification, Inputs, Objective, batch_length, call_model, map_tensors

T = TypeVar("T")
Forward = Callable[..., Any]
Closed = frozenset[int]
HighwayModule = HighwayLayer | HighwayStack | LSTMHighway
ClosableModule = HighwayModule | ResidualStack
_TELLING = (RuntimeError, TypeError, IndexError, ValueError, AttributeError)  # their messages need no class to be clear


@dataclass(frozen=True, eq=False)
class LayerGroup:
    """A module with one highway layer, or a stack of highway or residual layers, and the module's original forward.

    Attributes:
        name: The module's name in the model.
        module: The module.
        forward: Its forward method before the model was instrumented.
        first: The number of its first layer, in forward order.
    """

    name: str
    module: ClosableModule
    forward: Forward
    first: int = -1

    @property
    def depth(self) -> int:
        """The number of its layers."""
        return 1 if isinstance(self.module, HighwayLayer) else self.module.depth

    @property
    def layers(self) -> list[str]:
        """The names of its layers."""
        return layer_names(self.name, self.module)

    def own(self, closed: Closed) -> set[int]:
        """The layers of this group among `closed`, counted from the group's first layer."""
        return {layer - self.first for layer in closed if 0 <= layer - self.first < self.depth}

    def __call__(self, x: Tensor, closed: Closed = frozenset()) -> Tensor:
        """The block output with some layers closed; never x itself, because the model may change it in place."""
        own = self.own(closed)
        y: Tensor = self.forward(x, bool(own) if isinstance(self.module, HighwayLayer) else own)
        return y.clone() if own and y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() else y


@dataclass(frozen=True, eq=False)
class BlockGroup:
    """A block that is not a highway layer, and its module's original forward.

    Attributes:
        block: The block.
        module: Its module.
        forward: The module's forward method before the model was instrumented.
        first: The block's number, in forward order.
    """

    block: Block
    module: nn.Module
    forward: Forward
    first: int = -1
    depth = 1  # like a group of one layer

    @property
    def name(self) -> str:
        """The name of the module."""
        return self.block.name

    @property
    def layers(self) -> list[str]:
        """The name of the block, as a list of one."""
        return [self.block.name]

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any], closed: Closed = frozenset()) -> Any:  # noqa: ANN401
        """What the module returns, closed or not."""
        return self.block.closed_output(args, kwargs) if self.first in closed else self.forward(*args, **kwargs)


Group = LayerGroup | BlockGroup


class ForwardMode:
    """How one forward pass is computed: here with some layers closed; subclasses record or reuse outputs."""

    def __init__(self, closed: Closed = frozenset()) -> None:
        self.closed = closed

    def highway(self, group: LayerGroup, x: Tensor) -> Tensor:
        """Compute the output of a group of highway layers."""
        return group(x, self.closed)

    def block(self, group: BlockGroup, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """Compute the output of any other block."""
        return group(args, kwargs, self.closed)

    def other(self, run: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the user's module returns
        """Compute the output of a module without blocks."""
        return run()


class InstrumentedModel:
    """A copy of a model that shares its weights and whose forward passes follow a `ForwardMode`.

    Args:
        model: Any model.
        x: A few samples; layers are numbered in the order in which these samples reach them.
        blocks: The blocks that can be closed, besides the highway layers, which always can.
        objective: It reads the model's output; by default, the output must be logits.
    """

    def __init__(
        self, model: nn.Module, x: Inputs, blocks: Sequence[Block] = (), objective: Objective | None = None
    ) -> None:
        self.model, self._objective = shadow_copy(model).eval(), objective or Classification()
        _disable_cache(self.model)
        self._mode, self._inside, self._changes_input = ForwardMode(), False, False
        order = _FindOrder()
        modules: dict[int, nn.Module] = {}
        named = {block.name for block in blocks}
        in_groups: set[str] = set()
        for name, module in closable_modules(self.model):
            if isinstance(module, ResidualStack) and named.isdisjoint(layer_names(name, module)):
                continue
            in_groups |= set(layer_names(name, module))
            layer_group = LayerGroup(name, module, module.forward)
            module.forward = partial(self._highway, layer_group)  # type: ignore[method-assign]
            modules[id(module)] = module
        for block in blocks:
            if block.kind != "highway" and block.name not in in_groups:
                other = _submodule(self.model, block.name)
                modules[id(other)] = other
                other.forward = partial(self._block, BlockGroup(block, other, other.forward))
        for other in _other_modules(self.model, modules):
            other.forward = partial(self._other, other.forward)
        x = map_tensors(Tensor.clone, x)
        tensors = [leaf for _, leaf in leaves(x) if isinstance(leaf, Tensor)]
        versions = [tensor._version for tensor in tensors]
        with torch.no_grad():
            run_example(partial(self.run, order), x, copy=False)
        self._changes_input = versions != [tensor._version for tensor in tensors]
        self.groups = self._numbered(order.reached)
        self.layers = tuple(name for group in self.groups for name in group.layers)

    def run(self, mode: ForwardMode, x: Inputs) -> Tensor:
        """The outputs of one forward pass, such as logits."""
        self._mode = mode
        output = run_example(partial(call_model, self.model), x, copy=self._changes_input)
        return self._objective.read_output(output, batch_length(x))

    def group_of(self, layer: int) -> Group:
        """The group that contains a layer."""
        return next(group for group in self.groups if group.first <= layer < group.first + group.depth)

    def _highway(self, group: LayerGroup, x: Tensor, closed: bool | Collection[int] = ()) -> Tensor:
        if closed:
            raise UserError(f"the model closes '{group.name}' itself; the analysis needs all layers open")
        if self._inside:
            return group(x)
        return self._as_one(partial(self._mode.highway, group, x))  # type: ignore[no-any-return]

    def _block(self, group: BlockGroup, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if self._inside:
            return group.forward(*args, **kwargs)
        return self._as_one(partial(self._mode.block, group, args, kwargs))

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

    def _numbered(self, reached: list[Group]) -> tuple[Group, ...]:
        """The groups with the numbers of their layers, which their modules report from now on."""
        if not reached:
            recurrent = any(isinstance(module, RecurrentHighway) for module in self.model.modules())
            why = " except inside a RecurrentHighway, which cannot be analysed" if recurrent else ""
            raise UserError(f"the forward pass of this {type(self.model).__name__} uses no highway layers{why}")
        numbered: list[Group] = []
        for group in reached:
            first = numbered[-1].first + numbered[-1].depth if numbered else 0
            numbered.append(replace(group, first=first))
            run = self._highway if isinstance(group, LayerGroup) else self._block
            group.module.forward = partial(run, numbered[-1])  # type: ignore[arg-type]
        return tuple(numbered)


class _FindOrder(ForwardMode):
    """Notes the order in which groups are reached."""

    def __init__(self) -> None:
        super().__init__()
        self.reached: list[Group] = []

    def highway(self, group: LayerGroup, x: Tensor) -> Tensor:
        self._reach(group, "highway layer")
        return super().highway(group, x)

    def block(self, group: BlockGroup, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401
        self._reach(group, "block")
        return super().block(group, args, kwargs)

    def _reach(self, group: Group, what: str) -> None:
        if group in self.reached:
            raise UserError(f"'{group.name}' is applied more than once; the analysis needs each {what} only once")
        self.reached.append(group)


def run_example(run: Callable[[Inputs], T], inputs: Inputs, copy: bool = True) -> T:
    """Run something once and turn the model's errors, such as torch's about unsuitable data, into one-line messages.

    Args:
        run: What to run.
        inputs: Its argument.
        copy: Whether it gets a copy, which it may change in place.
    """
    try:
        return run(map_tensors(Tensor.clone, inputs) if copy else inputs)
    except (UserError, MemoryError):
        raise
    except Exception as error:  # the model's code is the user's and may raise anything
        kind = type(error).__name__
        reason = (str(error).strip() or kind).splitlines()[0]
        if reason != kind and not isinstance(error, _TELLING):
            reason = f"{kind}: {reason}"
        raise UserError(f"the model fails on samples of {_describe_inputs(inputs)}: {reason}") from error


def layer_names(name: str, module: ClosableModule) -> list[str]:
    """The names of the layers in a layer or a stack of that name."""
    return [name] if isinstance(module, HighwayLayer) else [f"{name}.{layer}" for layer in range(module.depth)]


def _describe_inputs(inputs: Inputs) -> str:
    if isinstance(inputs, Tensor):
        return f"shape {tuple(inputs.shape[1:])}"
    shapes = {path: tuple(leaf.shape) for path, leaf in leaves(inputs) if isinstance(leaf, Tensor)}
    return "shapes " + ", ".join(f"{'.'.join(map(str, path))} {shape}" for path, shape in shapes.items())


def _submodule(model: nn.Module, name: str) -> nn.Module:
    try:
        return model.get_submodule(name)
    except AttributeError:
        kind = type(model).__name__
        raise UserError(f"this {kind} has no module '{name}'; find its blocks with find_blocks") from None


def _disable_cache(model: nn.Module) -> None:
    """Keep a language model of transformers from filling a cache for generation, which nobody reads here."""
    if getattr(getattr(model, "config", None), "use_cache", False) is True:
        model.config.use_cache = False  # type: ignore[union-attr]  # the copy's own


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
    """Highway layers and stacks of them that are not inside another one, each once, with their names."""
    return ((name, child) for name, child in closable_modules(module) if isinstance(child, HighwayModule))


def closable_modules(module: nn.Module) -> Iterator[tuple[str, ClosableModule]]:
    """The same, and residual stacks."""
    inside: set[int] = set()
    for name, child in module.named_modules():
        if isinstance(child, ClosableModule) and id(child) not in inside:
            yield name, child
        if isinstance(child, ClosableModule | RecurrentHighway):
            inside |= {id(inner) for inner in child.modules()}


def _other_modules(module: nn.Module, blocks: Mapping[int, nn.Module]) -> list[nn.Module]:
    """The largest modules without blocks that are not inside a block."""
    found: dict[int, nn.Module] = {}
    for child in module.children():
        if id(child) in blocks:
            continue
        if isinstance(child, nn.ModuleList | nn.ModuleDict) or any(id(inner) in blocks for inner in child.modules()):
            found |= {id(inner): inner for inner in _other_modules(child, blocks)}
        else:
            found[id(child)] = child
    return list(found.values())
