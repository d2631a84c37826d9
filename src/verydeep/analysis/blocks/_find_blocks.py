"""Finding the blocks of a network: highway layers, residual blocks by proof, and modules that the user names.

The proof is one forward pass: a module is a residual block if its output is computed by adding something to the very
tensor that came in. `_identity_paths` watches the additions; this file decides which modules are layers, and refuses
those that cannot be closed exactly.
"""

import re
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from verydeep.analysis.blocks._block import Block, BlockKind, CarriedLeaf, SideLeaf
from verydeep.analysis.blocks._blocks import closable_modules, layer_names, run_example, shadow_copy
from verydeep.analysis.blocks._module_calls import ModuleCall, record_calls
from verydeep.analysis.blocks._refused_blocks import FoundBlocks, NoBlocksError, RefusalReason, RefusedBlock
from verydeep.analysis.blocks._trees import Path, leaves, map_leaves, path_text
from verydeep.cpu import cpu_settings
from verydeep.errors import UserError, unknown
from verydeep.models import Network, ResidualNet
from verydeep.nn import RecurrentHighway, ResidualStack
from verydeep.objectives import Inputs, call_model, map_tensors

Level = Literal["layer", "sublayer"]
Blocks = Sequence[Block] | Sequence[str] | None
"""The blocks to close: what `find_blocks` returned, patterns of names, or None for those that it finds by itself."""

_MOST_ADDITIONS = 4  # of a layer; a module with more of its own is a whole network


@cpu_settings()
def find_blocks(
    model: nn.Module, example: Inputs, blocks: Sequence[str] | None = None, level: Level = "layer"
) -> FoundBlocks:
    """Find the blocks of a network that can be closed: highway layers and residual blocks.

    A residual block is a module whose output is computed by adding something to its input, in one forward pass of the
    example: `x + f(x)`, however it is written. Closed, it returns its input. A ReLU after the addition is accepted if
    it leaves the input as it is. Modules that normalise after the addition (post-norm), as in BERT, must be named.

    Args:
        model: Any model; it is not changed.
        example: One batch of inputs, a few samples: a tensor, a tuple of positional arguments, or a dictionary of
            keyword arguments.
        blocks: Patterns of module names, such as `encoder.layer.*`; an asterisk stands for one part of a name. Closing
            such a module leaves it out. By default, residual blocks are found. Highway layers are always found.
        level: `layer` finds whole layers, `sublayer` what each of them adds: attention and feed-forward network of a
            transformer's layer.

    Returns:
        The blocks in the order in which the example reaches them, a tuple. Its attribute `refused` lists the modules
        that look like blocks but cannot be closed exactly, with the reason.

    Raises:
        UserError: If there are no blocks, or a named one cannot be closed exactly: because it changes the shape, is
            applied more than once, or has further outputs that are used.

    Example:
        >>> import torch
        >>> from verydeep.analysis import find_blocks
        >>> from verydeep.models import create_model
        >>> model = create_model("resnet-110", blocks=2, widths=[4, 8, 8], stem=4, input_shape=(1, 8, 8))
        >>> blocks = find_blocks(model, torch.randn(2, 1, 8, 8))
        >>> [block.name for block in blocks]
        ['blocks.0', 'blocks.1', 'blocks.3', 'blocks.5']
        >>> blocks.refused[0]
        RefusedBlock(name='blocks.2', reason='shape', message="'blocks.2' cannot be closed: it turns (2, 4, 8, 8) ...")
    """
    if level not in ("layer", "sublayer"):
        raise unknown("level", level, ("layer", "sublayer"))
    if not isinstance(model, nn.Module):
        raise UserError(f"find_blocks needs a torch module, got {type(model).__name__}")
    if isinstance(example, Tensor) and not example.numel():
        raise UserError(f"find_blocks needs an example with samples in it, got shape {tuple(example.shape)}")
    return _Finder(model, example).find(blocks, level)


def closable_blocks(network: nn.Module) -> FoundBlocks:
    """The blocks of a residual network of `verydeep.models`, which needs no data for that; none of other networks."""
    if not isinstance(network, Network):
        return FoundBlocks()
    if not isinstance(network, ResidualNet) and not any(isinstance(each, ResidualStack) for each in network.modules()):
        return FoundBlocks()
    device = next(network.parameters()).device
    example = torch.zeros(2, *network.input_shape, device=device)
    try:
        return find_blocks(network, example)
    except NoBlocksError as error:
        return FoundBlocks((), error.refused)


def resolve_blocks(model: nn.Module, example: Inputs, blocks: Blocks) -> tuple[Block, ...]:
    """The blocks that an argument `blocks` of an analysis stands for."""
    if blocks is None or isinstance(blocks, str):
        return find_blocks(model, example, None if blocks is None else [blocks])
    given = tuple(blocks)
    if not given:
        return ()
    names = [each for each in given if isinstance(each, str)]
    if len(names) == len(given):
        return find_blocks(model, example, names)
    if names:
        raise UserError("blocks must be the result of find_blocks, or patterns of names such as encoder.layer.*")
    return tuple(each for each in given if isinstance(each, Block))


class _Finder:
    """The calls of one forward pass, and what can be closed among them."""

    def __init__(self, model: nn.Module, example: Inputs) -> None:
        self.model, self.example = shadow_copy(model).eval(), example
        self.refused: dict[str, RefusedBlock] = {}
        calls, self.output = run_example(partial(record_calls, self.model), example)
        self.calls = {call.name: call for call in calls if call.times == 1}
        self.highways = {name: module for name, module in closable_modules(self.model) if _is_called(name, calls)}
        self.repeated = {call.name: call for call in calls if call.times > 1}
        inside = (*self.highways.values(), *(m for m in self.model.modules() if isinstance(m, RecurrentHighway)))
        hidden = {id(module) for highway in inside for module in highway.modules()}
        self.inside_highways = {name for name, module in self.model.named_modules() if id(module) in hidden}
        self.closable = {name: call for name, call in self.calls.items() if self._is_apart_from_highways(name)}

    def _is_apart_from_highways(self, name: str) -> bool:
        """Whether a module is not the network itself, nor contains or is part of a highway layer."""
        inside = name in self.inside_highways
        return bool(name) and not inside and not any(_contains(name, highway) for highway in self.highways)

    def find(self, patterns: Sequence[str] | None, level: Level) -> FoundBlocks:
        """Find the blocks, in the order in which the example reaches them."""
        if patterns is None:
            found = self._without_side_outputs(self._residual(level))
            self._refuse_others(found)
        else:
            found = [self._named(name) for name in self._matching(patterns)]
            kept = self._without_side_outputs(found)
            if len(kept) < len(found):
                raise UserError(next(iter(self.refused.values())).message)
        for name in self.highways:
            if name in self.repeated:
                raise UserError(f"'{name}' is applied more than once; the analysis needs each highway layer only once")
        order = {name: call.order for name, call in self.calls.items()}
        groups: list[tuple[int, list[Block]]] = [(order[block.name], [block]) for block in found]
        groups += [(order[name], self._highway_blocks(name)) for name in self.highways]
        blocks = tuple(block for _, group in sorted(groups, key=lambda pair: pair[0]) for block in group)
        if not blocks:
            raise NoBlocksError(self._why_none(), tuple(self.refused.values()))
        return FoundBlocks(blocks, sorted(self.refused.values(), key=lambda each: order.get(each.name, len(order))))

    def _highway_blocks(self, name: str) -> list[Block]:
        shape = next((leaf.shape for leaf in self.calls[name].inputs), ())
        module = self.highways[name]
        kind: BlockKind = "residual" if isinstance(module, ResidualStack) else "highway"
        return [Block(layer, kind, shape) for layer in layer_names(name, module)]

    def _residual(self, level: Level, normalised: bool = False) -> list[Block]:
        """Residual blocks, the outermost that are layers; with `normalised`, those that normalise the sum."""
        proven = {
            name: call
            for name, call in self.closable.items()
            if call.proof is not None and (call.proof.path.normalised if normalised else call.proof.path.exact)
        }
        blocks = []
        for name in _outermost(proven):
            for layer in self._layers(name, proven):
                whole = level == "layer" and not self._is_network(layer, proven)
                try:
                    blocks += [self._block(layer, "residual")] if whole else self._parts(layer, proven)
                except UserError as error:
                    self.refused[layer] = RefusedBlock(layer, "parts", str(error))
        return blocks

    def _layers(self, name: str, proven: dict[str, ModuleCall]) -> list[str]:
        """A module if it is a layer, or else the layers inside it, as in a `Sequential` of residual blocks."""
        children = self._children(name, proven)
        kinds = [type(self.model.get_submodule(child)) for child in children]
        if self._own_additions(name, proven) or (len(kinds) > 1 and len(set(kinds)) == len(kinds)):
            return [name]
        return [layer for child in children for layer in self._layers(child, proven)]

    def _is_network(self, name: str, proven: dict[str, ModuleCall]) -> bool:
        return len(self._own_additions(name, proven)) > _MOST_ADDITIONS

    def _parts(self, name: str, proven: dict[str, ModuleCall]) -> list[Block]:
        """What a layer adds, one by one: blocks inside it, and modules whose output it adds."""
        children = self._children(name, proven)
        own = self._own_additions(name, proven)
        if len(own) + len(children) == 1 and not children:
            return [self._block(name, "residual")]
        parts = [part for child in children for part in self._parts(child, proven)]
        for branch in own.values():
            call = None if branch is None else self.closable.get(branch)
            if call is None or call.carried is None:
                raise UserError(
                    f"'{name}' adds something that no module of its own returns, so its parts cannot be closed one by "
                    "one; close the whole layer with level='layer', or name modules in blocks="
                )
            parts.append(self._block(call.name, "branch"))
        return sorted(parts, key=lambda block: self.calls[block.name].order)

    def _children(self, name: str, proven: dict[str, ModuleCall]) -> list[str]:
        """The largest proven modules inside a proven one whose additions are on its path."""
        own = _additions(proven[name])
        return _outermost(
            {n: c for n, c in proven.items() if _contains(name, n) and _additions(c).keys() <= own.keys()}
        )

    def _own_additions(self, name: str, proven: dict[str, ModuleCall]) -> dict[int, str | None]:
        """The additions of a proven module that no proven module inside it makes, with the names of their branches."""
        inner = {number for child in self._children(name, proven) for number in _additions(proven[child])}
        return {number: branch for number, branch in _additions(proven[name]).items() if number not in inner}

    def _matching(self, patterns: Sequence[str]) -> list[str]:
        """The names of modules that match a pattern."""
        modules = [name for name, _ in self.model.named_modules() if name]
        layers = {layer for name, module in self.highways.items() for layer in layer_names(name, module)}
        found: dict[str, None] = {}
        for pattern in patterns:
            matching = [name for name in modules if _matches(name, pattern)]
            if not matching and not any(_matches(layer, pattern) for layer in layers):
                raise unknown("module", pattern, dict.fromkeys(map(_with_asterisks, modules)))
            found |= dict.fromkeys(name for name in matching if name not in layers | self.highways.keys())
        for name in found:
            outer = next((other for other in found if _contains(other, name)), None)
            if outer is not None:
                raise UserError(f"blocks names both '{outer}' and '{name}', which is inside it; name one of them")
        return list(found)

    def _named(self, name: str) -> Block:
        """A module that the user named, or the reason why it cannot be closed."""
        if name in self.repeated:
            raise UserError(f"'{name}' is applied more than once and cannot be closed: closing one use closes them all")
        call = self.closable.get(name)
        if call is None:
            why = "contains highway layers, or is part of one" if name in self.calls else "is not used by the example"
            raise UserError(f"'{name}' {why}, so it cannot be closed")
        if call.proof is not None and call.proof.path.exact:
            return self._block(name, "residual")
        if call.carried is None:
            shapes = ", ".join(str(leaf.shape) for leaf in call.inputs)
            takes = f"takes {shapes}" if shapes else "takes no tensor of floating-point numbers"
            raise UserError(f"'{name}' cannot be closed: it {takes} and returns {call.returned}")
        return self._block(name, "named")

    def _block(self, name: str, kind: Literal["residual", "branch", "named"]) -> Block:
        call = self.calls[name]
        found = call.proof if kind == "residual" else call.carried
        assert found is not None

        def mark(path: Path, leaf: Any) -> Any:  # noqa: ANN401
            return CarriedLeaf() if path == found.output else leaf

        return Block(name, kind, found.shape, found.input, map_leaves(mark, call.skeleton))

    def _without_side_outputs(self, blocks: list[Block]) -> list[Block]:
        """The blocks without those whose further outputs the network uses; `refused` says which."""
        several = [block for block in blocks if any(isinstance(leaf, SideLeaf) for _, leaf in leaves(block.output))]
        if not several or self._is_unused(several):
            return blocks
        for block in several:
            if not self._is_unused([block]):
                paths = [path for path, leaf in leaves(block.output) if isinstance(leaf, SideLeaf)]
                self._refuse(
                    block.name, "side output", f"it also returns {path_text(paths[0])}, which the network uses"
                )
        return [block for block in blocks if block.name not in self.refused]

    def _is_unused(self, blocks: list[Block]) -> bool:
        """Whether the network computes the same without the side outputs of some blocks."""
        changed = []
        for block in blocks:
            module = self.model.get_submodule(block.name)
            changed.append((module, module.forward))
            module.forward = partial(_drop_sides, block, module.forward)
        try:
            with torch.no_grad():
                output = call_model(self.model, map_tensors(Tensor.clone, self.example))
        except Exception:  # whatever the user's code does with a value that is missing
            return False
        finally:
            for module, forward in changed:
                module.forward = forward
        before, after = _main_output(self.output), _main_output(output)
        return before is not None and after is not None and torch.equal(before, after)

    def _refuse(self, name: str, reason: RefusalReason, why: str) -> None:
        self.refused[name] = RefusedBlock(name, reason, f"'{name}' cannot be closed: {why}")

    def _refuse_others(self, found: list[Block]) -> None:
        """Note the modules that look like blocks, but are not among those that were found."""
        names = {block.name for block in found} | self.highways.keys()
        for name, module in self.model.named_modules():
            if isinstance(module, RecurrentHighway) and name in self.calls.keys() | self.repeated.keys():
                self._refuse(name, "recurrent", "a RecurrentHighway applies its layers at every step")
        repeated = {name: call for name, call in self.repeated.items() if call.proof is not None}
        for name in _outermost({name: call for name, call in repeated.items() if self._is_free(name, names)}):
            self._refuse(name, "shared", "it is applied more than once, and closing one use closes them all")
        for block in self._residual("layer", normalised=True):
            if self._is_free(block.name, names):
                why = "it normalises after the addition (post-norm); name it in blocks= to leave it out"
                self._refuse(block.name, "post-norm", why)
        for name in self._sums():
            if self._is_free(name, names):
                self._refuse(name, *self._why_not_residual(self.calls[name]))
        kinds = {type(self.model.get_submodule(block.name)) for block in found if block.kind == "residual"}
        for name, module in self.model.named_modules():  # of the same class, such as blocks without an addition
            if type(module) in kinds - {nn.Sequential} and self._is_free(name, names):
                if name in self.calls:
                    self._refuse(name, *self._why_not_residual(self.calls[name]))
                elif name not in self.repeated:
                    self._refuse(name, "unused", "the example does not reach it")

    def _is_free(self, name: str, names: Collection[str]) -> bool:
        """Whether a module neither contains nor is part of a block, found or refused."""
        taken = (*names, *self.refused)
        within = any(name == other or _contains(name, other) or _contains(other, name) for other in taken)
        return not within and self._is_apart_from_highways(name)

    def _sums(self) -> list[str]:
        """Modules whose output is a sum of two results of an input, but not the input plus something.

        Of modules inside each other that return the same sum, this is the innermost.
        """
        innermost: dict[int, ModuleCall] = {}
        for call in sorted(self.closable.values(), key=lambda call: call.order):
            if call.final_sum is not None and (call.proof is None or call.proof.path.clamped):
                innermost[call.final_sum] = call
        return _outermost({call.name: call for call in innermost.values()})

    def _why_not_residual(self, call: ModuleCall) -> tuple[RefusalReason, str]:
        """Why a module that looks like a residual block is none."""
        if call.proof is not None and call.proof.path.clamped:
            return "clamp", "a ReLU or clamp after the addition changes its input"
        if call.carried is None and call.inputs:
            return "shape", f"it turns {call.inputs[0].shape} into {call.returned}"
        return "changed input", "its output is not its unchanged input plus something"

    def _why_none(self) -> str:
        """Say why nothing can be closed, and what to do."""
        kind = type(self.model).__name__
        exact = [each for each in self.refused.values() if each.reason in ("side output", "parts")]
        if exact:
            return f"no block of this {kind} can be closed: {exact[0].message}"
        if any(isinstance(module, RecurrentHighway) for module in self.model.modules()):
            why = " except inside a RecurrentHighway, which cannot be analysed"
            return f"the forward pass of this {kind} uses no highway layers{why}"
        normalised = self._residual("layer", normalised=True)
        if normalised:
            pattern = _with_asterisks(normalised[0].name)
            return (
                f"this {kind} normalises after its additions (post-norm), so a closed layer is not defined by them; "
                f"name the layers to leave out with blocks= or --blocks, such as {pattern!r}"
            )
        first = next(iter(self.refused.values()), None)
        why = "" if first is None else f"; {first.message}"
        return (
            f"the forward pass of this {kind} uses no highway layers and no residual blocks{why}; "
            "modules to leave out can be named with blocks= or --blocks, such as 'layers.*'"
        )


def _drop_sides(block: Block, forward: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
    sides = {path for path, leaf in leaves(block.output) if isinstance(leaf, SideLeaf)}
    return map_leaves(lambda path, leaf: None if path in sides else leaf, forward(*args, **kwargs))


def _main_output(output: Any) -> Tensor | None:  # noqa: ANN401
    """The tensor that the network is used for: its logits, its last hidden state, or its first tensor."""
    for name in ("logits", "last_hidden_state"):
        if isinstance(getattr(output, name, None), Tensor):
            return getattr(output, name)  # type: ignore[no-any-return]
    return next((leaf for _, leaf in leaves(output) if isinstance(leaf, Tensor)), None)


def _is_called(name: str, calls: Sequence[ModuleCall]) -> bool:
    return any(call.name == name for call in calls)


def _contains(outer: str, inner: str) -> bool:
    return inner.startswith(f"{outer}.")


def _outermost(names: dict[str, ModuleCall]) -> list[str]:
    found = [name for name in names if not any(_contains(other, name) for other in names)]
    return sorted(found, key=lambda name: names[name].order)


def _additions(call: ModuleCall) -> dict[int, str | None]:
    assert call.proof is not None
    return {addition.number: addition.branch for addition in call.proof.path.additions}


def _matches(name: str, pattern: str) -> bool:
    names, patterns = name.split("."), pattern.split(".")
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))


def _with_asterisks(name: str) -> str:
    return re.sub(r"(?<=\.)\d+(?=\.|$)", "*", name)
