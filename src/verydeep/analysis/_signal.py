"""How signals travel forward and gradients backward, in highway and plain networks alike."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from verydeep.analysis._data import Data, Progress, device, go_through
from verydeep.analysis._moments import array
from verydeep.analysis._results import SignalFlow
from verydeep.analysis._score import check_classes
from verydeep.analysis._view import twin, units
from verydeep.errors import UserError
from verydeep.nn import HighwayStack, PlainStack

Step = Callable[[Tensor], Tensor]

_BATCH = 100
_PLAIN = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


def signal_flow(model: nn.Module, data: Data, name: str = "", progress: Progress | None = None) -> SignalFlow:
    """Root mean squares of each layer's output, and of the gradient of each sample's loss by it.

    Looks at highway layers and the layers of plain stacks; in a model that has neither, at all linear maps and
    convolutions. A few hundred samples are enough.

    Args:
        model: Anything that returns logits; it is not changed.
        data: What to look at: a `Split`, or batches.
        name: What the network is called in the result, for example "highway, trained".
        progress: Is told the share that is done.
    """
    watch = _Watch(model)
    for x, y in go_through(data, _BATCH, device(model), progress):
        watch.add(x, y)
    return watch.result(name)


class _Watch:
    """A twin whose layers note their outputs."""

    def __init__(self, model: nn.Module) -> None:
        self.model = twin(model).eval()
        self.outputs: dict[str, Tensor] = {}
        self.totals: dict[str, Tensor] = {}  # squared outputs, squared gradients, how many of each
        for name, module in _watched(self.model):
            module.forward = partial(self._apply, _steps(name, module))

    def add(self, x: Tensor, y: Tensor) -> None:
        """Send a batch forward and back."""
        self.outputs.clear()
        with torch.enable_grad():
            logits = self.model(x.detach().requires_grad_(x.is_floating_point()).clone())
            check_classes(logits, y)
            loss = F.cross_entropy(logits.float(), y, reduction="sum")  # each sample's own: batches do not matter
            gradients = torch.autograd.grad(loss, list(self.outputs.values()), materialize_grads=True)
        for (name, output), gradient in zip(self.outputs.items(), gradients, strict=True):
            sums = torch.stack([_squares(output), _squares(gradient), torch.tensor(float(output.numel())).double()])
            self.totals[name] = self.totals.get(name, torch.zeros(3).double()) + sums

    def result(self, name: str) -> SignalFlow:
        """The root mean squares over all batches."""
        totals = torch.stack(list(self.totals.values()))
        rms = array((totals[:, :2] / totals[:, 2:]).sqrt())
        return SignalFlow(name, tuple(self.totals), rms[:, 0], rms[:, 1])

    def _apply(self, steps: dict[str, Step], x: Tensor, closed: object = ()) -> Tensor:
        for name, step in steps.items():
            x = step(x)
            if not x.requires_grad:  # frozen, and made of numbers that have no gradients
                x.requires_grad_()
            times = sum(key.partition("#")[0] == name for key in self.outputs)
            self.outputs[f"{name}#{times + 1}" if times else name] = x
        return x


def _watched(model: nn.Module) -> list[tuple[str, nn.Module]]:
    found: list[tuple[str, nn.Module]] = list(units(model))
    found += [(name, module) for name, module in model.named_modules() if isinstance(module, PlainStack)]
    found = found or [(name, module) for name, module in model.named_modules() if isinstance(module, _PLAIN)]
    if not found:
        raise UserError(f"this {type(model).__name__} has no layers to look at")
    return found


def _steps(name: str, module: nn.Module) -> dict[str, Step]:
    """The layers of a module; those of stacks are taken apart."""
    if isinstance(module, HighwayStack):
        return {f"{name}.{number}": layer for number, layer in enumerate(module.to_layers())}
    if isinstance(module, PlainStack):
        layers = [nn.Sequential(layer, _Activation(module.activation)) for layer in module.to_layers()]
        return {f"{name}.{number}": layer for number, layer in enumerate(layers)}
    return {name: module.forward}


class _Activation(nn.Module):
    def __init__(self, function: Step) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def _squares(values: Tensor) -> Tensor:
    return values.detach().double().square().sum().cpu()
