"""What every module of a model takes and returns in one forward pass, and which of them add to their input."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from verydeep.analysis.blocks._block import InputLeaf, SideLeaf
from verydeep.analysis.blocks._identity_paths import IdentityPath, IdentityPaths
from verydeep.analysis.blocks._trees import Path, leaves, map_leaves
from verydeep.objectives import Inputs, call_model


@dataclass(frozen=True)
class TensorInput:
    """A floating-point tensor that a module takes.

    Attributes:
        path: Its path in `(args, kwargs)`.
        shape: Its shape.
        dtype: Its type.
        mark: Its number in `IdentityPaths`.
    """

    path: Path
    shape: tuple[int, ...]
    dtype: torch.dtype
    mark: int


@dataclass(frozen=True)
class Carried:
    """An input and an output of a module that belong together.

    Attributes:
        input: The path of the input.
        output: The path of the output.
        shape: The shape of both.
        path: How the output contains the input.
    """

    input: Path
    output: Path
    shape: tuple[int, ...]
    path: IdentityPath = field(default_factory=IdentityPath)


@dataclass
class ModuleCall:
    """The calls of one module; everything but the number of calls is that of the first.

    Attributes:
        name: The module's name.
        order: Its place among all modules, by the beginning of the call.
        inputs: The floating-point tensors it takes.
        times: How often it is called.
        skeleton: What it returns, with marks in the places of tensors.
        returned: The shape of the first tensor it returns.
        proof: The input that its output contains, if there is exactly one.
        carried: The first tensor it returns, and the first input of the same shape and type, if there is one.
        final_sum: The number of the addition that made the first tensor it returns, if both terms were computed from
            one of its inputs.
    """

    name: str
    order: int
    inputs: list[TensorInput]
    times: int = 1
    skeleton: Any = None
    returned: tuple[int, ...] = ()
    proof: Carried | None = None
    carried: Carried | None = None
    final_sum: int | None = None


def record_calls(model: nn.Module, inputs: Inputs) -> tuple[list[ModuleCall], Any]:
    """Run a model once, without gradients, and return what its modules did and what it returned.

    Args:
        model: The model, which has hooks only as long as it runs.
        inputs: Its inputs.
    """
    calls: dict[str, ModuleCall] = {}
    tracer = IdentityPaths()

    def enter(name: str, module: nn.Module, args: Any, kwargs: Any) -> None:  # noqa: ANN401
        found = [
            TensorInput(path, tuple(leaf.shape), leaf.dtype, tracer.mark(leaf))
            for path, leaf in leaves((args, kwargs))
            if isinstance(leaf, Tensor) and leaf.is_floating_point() and leaf.numel()
        ]
        if name in calls:
            calls[name].times += 1
        else:
            calls[name] = ModuleCall(name, len(calls), found)

    def leave(name: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:  # noqa: ANN401
        call = calls[name]
        if call.times == 1:
            _describe(call, tracer, (args, kwargs), output)
        given = [leaf for _, leaf in leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        first = next((leaf for _, leaf in leaves(output) if isinstance(leaf, Tensor)), None)
        # A dropout that does nothing returns what another module produced.
        if first is not None and not any(tracer.same_content(first, each) for each in given):
            tracer.set_producer(first, name)

    with torch.no_grad(), _hooks(model, enter, leave), tracer:
        output = call_model(model, inputs)
    return list(calls.values()), output


@contextmanager
def _hooks(model: nn.Module, enter: Any, leave: Any) -> Iterator[None]:  # noqa: ANN401
    handles = []
    for name, module in model.named_modules():
        handles += [
            module.register_forward_pre_hook(_named(enter, name), with_kwargs=True),
            module.register_forward_hook(_named(leave, name), with_kwargs=True),
        ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _named(function: Any, name: str) -> Any:  # noqa: ANN401
    """A hook that also gets the module's name, and never changes what the module takes or returns."""

    def hook(*args: Any) -> None:  # noqa: ANN401
        function(name, *args)

    return hook


def _describe(call: ModuleCall, tracer: IdentityPaths, inputs: Any, output: Any) -> None:  # noqa: ANN401
    """Note what a module returned, and how its output contains an input."""
    given = {id(leaf): path for path, leaf in leaves(inputs) if leaf is not None and not isinstance(leaf, bool | int)}

    def mark(path: Path, leaf: Any) -> Any:  # noqa: ANN401
        if id(leaf) in given:
            return InputLeaf(given[id(leaf)])
        if isinstance(leaf, Tensor):
            return SideLeaf()
        return leaf if isinstance(leaf, bool | int | float | str | None) else None

    call.skeleton = map_leaves(mark, output)
    tensors = [(path, leaf) for path, leaf in leaves(output) if isinstance(leaf, Tensor)]
    for path, leaf in tensors:
        contained = tracer.paths(leaf) if leaf.is_floating_point() and leaf.numel() else {}
        adding = {mark: found for mark, found in contained.items() if found.additions}
        fit = [each for each in call.inputs if each.mark in adding and _fits(each, leaf)]
        same = [each for each in fit if adding[each.mark].exact] or fit
        if len({each.mark for each in same}) == 1 and call.proof is None:
            call.proof = Carried(same[0].path, path, tuple(leaf.shape), adding[same[0].mark])
    if not tensors:
        return
    path, first = tensors[0]
    call.returned = tuple(first.shape)
    if first.is_floating_point() and first.numel():
        sums = (tracer.sums_results_of(first, each.mark) for each in call.inputs)
        call.final_sum = next((number for number in sums if number is not None), None)
    fitting = next((each for each in call.inputs if _fits(each, first)), None)
    if fitting is not None:
        call.carried = Carried(fitting.path, path, call.returned)


def _fits(each: TensorInput, leaf: Tensor) -> bool:
    return each.shape == tuple(leaf.shape) and each.dtype == leaf.dtype
