"""How signals travel forward and gradients backward, in highway and plain networks."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from verydeep.analysis._data import (
    Data,
    Progress,
    as_batched,
    device_of,
    find_objective,
    first_samples,
    half_type,
    iterate,
)
from verydeep.analysis.activity._activity import to_array
from verydeep.analysis.activity._activity_results import SignalFlow
from verydeep.analysis.blocks._block import Block
from verydeep.analysis.blocks._blocks import ClosableModule, closable_modules, layer_names, run_example, shadow_copy
from verydeep.analysis.blocks._find_blocks import Blocks, resolve_blocks
from verydeep.analysis.blocks._trees import pick
from verydeep.cpu import cpu_settings
from verydeep.errors import UserError
from verydeep.float64 import as_float64
from verydeep.nn import HighwayStack, PlainStack, ResidualStack
from verydeep.objectives import Inputs, Objective, batch_length, call_model, map_tensors, move_inputs

_Layer = Callable[[Tensor], Tensor]

_BATCH = 100
_PLAIN = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


@cpu_settings()
def signal_flow(
    model: nn.Module,
    data: Data,
    name: str = "",
    progress: Progress | None = None,
    *,
    objective: Objective | None = None,
    blocks: Blocks = None,
) -> SignalFlow:
    """Measure the root mean square of each layer's output, and of a sample's loss gradient with respect to it.

    The layers are highway layers and the layers of plain stacks or, in a model that has neither, its residual blocks.
    If there are none, they are all linear maps and convolutions. A few hundred samples are enough.

    Args:
        model: Any model; it is not changed.
        data: A pair `(x, y)` of arrays or tensors, a split of a `Dataset`, or batches.
        name: What the result calls the network, for example "highway, trained".
        progress: Called with the fraction of the work that is done.
        objective: Its loss is used; by default, the task of a split. Without a task, whole numbers are classes and
            fractions the targets of a regression.
        blocks: The layers, as in `lesion_study`; by default, those described above.

    Returns:
        The size of activations and gradients per layer.

    Example:
        >>> from verydeep.analysis import signal_flow
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> signal_flow(model, data.test, "highway, untrained")
        <SignalFlow: 'highway, untrained', 3 layers; from the first to the last layer, activations ..., gradients ...>
    """
    batched = as_batched(data, model, objective)
    objective = find_objective(batched, objective)
    dtype = half_type(model)
    example = move_inputs(first_samples(batched, 2, objective), device_of(model), dtype)
    recorder = _FlowRecorder(model, objective, _find(model, example, blocks))
    for x, y in iterate(batched, _BATCH, device_of(model), progress, objective=objective, dtype=dtype):
        recorder.add(x, y)
    return recorder.result(name)


class _FlowRecorder:
    """A copy of a model whose layers record their outputs."""

    def __init__(self, model: nn.Module, objective: Objective, blocks: Sequence[Block]) -> None:
        self.model, self.objective = shadow_copy(model).eval(), objective
        self.outputs: dict[str, Tensor] = {}
        self.totals: dict[str, Tensor] = {}  # squared outputs, squared gradients, number of each
        for block in blocks:
            inner = self.model.get_submodule(block.name)
            inner.forward = partial(self._block, block, inner.forward)
        for name, module in _recorded_modules(self.model) if not blocks else ():
            module.forward = partial(self._forward, _layers(name, module))

    def add(self, x: Inputs, y: Tensor) -> None:
        """Run a batch forward and backward."""
        self.outputs.clear()
        with torch.enable_grad():
            inputs = map_tensors(lambda t: t.detach().requires_grad_(t.is_floating_point()).clone(), x)
            output = run_example(partial(call_model, self.model), inputs, copy=False)
            logits = self.objective.read_output(output, batch_length(x))
            self.objective.check(logits, y)
            loss = self.objective.loss(logits, y)  # a sum, so that gradients do not depend on the batch size
            gradients = torch.autograd.grad(loss, list(self.outputs.values()), materialize_grads=True)
        for (name, output), gradient in zip(self.outputs.items(), gradients, strict=True):
            sums = torch.stack([_squares(output), _squares(gradient), torch.tensor(float(output.numel())).double()])
            self.totals[name] = self.totals.get(name, torch.zeros(3).double()) + sums

    def result(self, name: str) -> SignalFlow:
        """The root mean squares over all batches."""
        totals = torch.stack(list(self.totals.values()))
        rms = to_array((totals[:, :2] / totals[:, 2:]).sqrt())
        return SignalFlow(name, tuple(self.totals), rms[:, 0], rms[:, 1])

    def _forward(self, layers: dict[str, _Layer], x: Tensor, closed: object = ()) -> Tensor:
        for name, layer in layers.items():
            x = self._record(name, layer(x))
        return x

    def _block(self, block: Block, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        output = forward(*args, **kwargs)
        self._record(block.name, pick(output, block.output_path))
        return output

    def _record(self, name: str, x: Tensor) -> Tensor:
        if not x.requires_grad:  # a frozen layer on inputs without gradients
            x.requires_grad_()
        times = sum(key.partition("#")[0] == name for key in self.outputs)
        self.outputs[f"{name}#{times + 1}" if times else name] = x
        return x


def _find(model: nn.Module, example: Inputs, blocks: Blocks) -> list[Block]:
    """The residual and named blocks to record; none in models with highway layers or plain stacks of ours."""
    if blocks is None:
        if any(isinstance(module, ClosableModule | PlainStack) for module in model.modules()):
            return []
        try:
            return list(resolve_blocks(model, example, None))
        except UserError:  # a plain network
            return []
    in_stacks = {layer for name, module in closable_modules(model) for layer in layer_names(name, module)}
    return [block for block in resolve_blocks(model, example, blocks) if block.name not in in_stacks]


def _recorded_modules(model: nn.Module) -> list[tuple[str, nn.Module]]:
    found: list[tuple[str, nn.Module]] = list(closable_modules(model))
    found += [(name, module) for name, module in model.named_modules() if isinstance(module, PlainStack)]
    found = found or [(name, module) for name, module in model.named_modules() if isinstance(module, _PLAIN)]
    if not found:
        raise UserError(f"this {type(model).__name__} has no highway layers, linear maps or convolutions")
    return found


def _layers(name: str, module: nn.Module) -> dict[str, _Layer]:
    """The layers of a module: those of a stack one by one."""
    if isinstance(module, HighwayStack):
        return {f"{name}.{number}": layer for number, layer in enumerate(module.to_layers())}
    if isinstance(module, ResidualStack):
        numbers = range(module.depth)
        return {f"{name}.{n}": partial(module.segment, first=n, last=n + 1) for n in numbers}
    if isinstance(module, PlainStack):
        layers = [nn.Sequential(layer, _Activation(module.activation)) for layer in module.to_layers()]
        return {f"{name}.{number}": layer for number, layer in enumerate(layers)}
    return {name: module.forward}


class _Activation(nn.Module):
    def __init__(self, function: _Layer) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def _squares(values: Tensor) -> Tensor:
    return as_float64(values.detach()).square().sum().cpu()
