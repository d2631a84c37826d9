"""The competitors in PyTorch: our network, the same network in torch's own operations, and the latter compiled."""

import copy
import os
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from verydeep.bench._tasks import Case
from verydeep.data import Batches
from verydeep.errors import UserError
from verydeep.kernels import UpdateRule
from verydeep.models import MLP, Conv, ConvConfig, Highways, Network, Pool, build, create_model
from verydeep.nn import HighwayConv2d, HighwayStack, PlainStack

LR, MOMENTUM = 0.01, 0.9


class Competitor(Protocol):
    """A network with its training step. All competitors start from equal weights and see the same batches."""

    compile_seconds: float

    def trainer(self, batches: Batches, most: int) -> tuple[Callable[[], None], int]:
        """What trains on the next batches in order, from drawing the batch to the update, and how many these are.

        Args:
            batches: The batches, epoch after epoch.
            most: The number of batches, at most.
        """

    def infer(self, x: Tensor) -> None:
        """Run the network forward."""

    def loss(self, x: Tensor, y: Tensor) -> float:
        """The loss at the current weights."""


def our_network(case: Case) -> Network:
    """Our network for a case, with the same weights every time."""
    torch.manual_seed(0)
    if case.kind == "named":
        return create_model(case.network).eval()  # without dropout
    if case.kind == "conv":
        layers = (Conv(case.width), Highways((3,) * case.depth), Pool(how="mean"))
        return build(ConvConfig(layers, case.input_shape))
    return create_model(f"{case.kind}-mlp", depth=case.depth, width=case.width)


class SingleSteps:
    """A competitor that trains one batch at a time."""

    def trainer(self, batches: Batches, most: int) -> tuple[Callable[[], None], int]:
        source = endless(batches)
        return lambda: self.train(*next(source)), 1

    def train(self, x: Tensor, y: Tensor) -> None:
        """Take a step: forward, loss, backward, update."""
        raise NotImplementedError


def endless(batches: Batches) -> Iterator[tuple[Tensor, Tensor]]:
    """The batches of one epoch after the other."""
    return (batch for epoch in count() for batch in batches.epoch(epoch))


class TorchCompetitor(SingleSteps):
    """A network with torch's cross-entropy and momentum SGD."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.parameters = model, list(model.parameters())
        self.optimiser = torch.optim.SGD(self.parameters, LR, MOMENTUM, fused=True)
        self.compile_seconds = 0.0

    def train(self, x: Tensor, y: Tensor) -> None:
        for parameter in self.parameters:
            parameter.grad = None
        self.backward(x, y)
        self.optimiser.step()

    def backward(self, x: Tensor, y: Tensor) -> None:
        F.cross_entropy(self.model(x), y).backward()

    @torch.no_grad()
    def infer(self, x: Tensor) -> None:
        self.model(x)

    @torch.no_grad()
    def loss(self, x: Tensor, y: Tensor) -> float:
        return float(F.cross_entropy(self.model(x), y))


class OurCompetitor(TorchCompetitor):
    """Our network, trained as our trainer does: a fully connected one many steps at a time."""

    model: Network

    def trainer(self, batches: Batches, most: int) -> tuple[Callable[[], None], int]:
        x, y = batches.split.x, batches.split.y
        if not (isinstance(self.model, MLP) and self.model.can_train_in_kernels(x[:1].flatten(1))):
            return super().trainer(batches, most)
        rules = {each: UpdateRule(0, MOMENTUM, False, 0.0, torch.zeros_like(each)) for each in self.parameters}
        targets = y.float()[:, None].contiguous()
        steps = self.model.training_steps(rules, x.flatten(1), targets, "cross-entropy", batches.batch_size)
        together = next(each for each in range(min(most, len(batches)), 0, -1) if len(batches) % each == 0)
        rates = torch.full((together, 1), LR)
        positions = ((batches.order(n), first) for n in count() for first in range(0, len(batches), together))

        def train() -> None:
            order, first = next(positions)
            steps.run(order, first * batches.batch_size, rates)

        return train, together

    def backward(self, x: Tensor, y: Tensor) -> None:
        if isinstance(self.model, MLP):
            self.model.backward_cross_entropy(x, y, 1 / len(y))
        else:
            super().backward(x, y)


class CompiledCompetitor(TorchCompetitor):
    """A network under torch.compile; its first step is timed."""

    def __init__(self, model: nn.Module, x: Tensor, y: Tensor, mode: str) -> None:
        if not shutil.which(os.environ.get("CXX", "g++")):
            raise UserError("torch.compile needs a C++ compiler")
        super().__init__(model)
        weights = copy.deepcopy(model.state_dict())
        torch.compiler.reset()  # after several networks it would stop compiling
        self.model = torch.compile(model)  # type: ignore[assignment]
        start = time.perf_counter()
        self.train(x, y) if mode == "train" else self.infer(x)
        self.compile_seconds = time.perf_counter() - start
        model.load_state_dict(weights)
        self.optimiser = torch.optim.SGD(model.parameters(), LR, MOMENTUM, fused=True)


class NaiveLayer(nn.Module):
    """A highway layer written naively: two affine maps, and each operation on its own."""

    def __init__(self, block: nn.Module, gate: nn.Module, relu: bool) -> None:
        super().__init__()
        self.block, self.gate, self.relu = block, gate, relu

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.block(x)) if self.relu else torch.tanh(self.block(x))
        t = torch.sigmoid(self.gate(x))
        return h * t + x * (1 - t)


def reference_network(model: Network) -> Network:
    """The same network with equal weights, whose layers run in torch's operations."""
    model = copy.deepcopy(model)
    for module in model.modules():
        if hasattr(module, "backend"):
            setattr(module, "backend", "reference")  # noqa: B010 - torch has no type for it
    return model


def naive_network(model: Network) -> nn.Sequential:
    """The same network with equal weights, built of ordinary layers."""
    model = copy.deepcopy(model)
    if isinstance(model, MLP):
        layers: list[nn.Module] = [nn.Flatten()]
        if model.input is not None:
            layers += [model.input, nn.Tanh()]
        if isinstance(model.stack, HighwayStack):
            layers += [NaiveLayer(layer.block, layer.gate, relu=False) for layer in model.stack.to_layers()]
        elif isinstance(model.stack, PlainStack):
            layers += [part for layer in model.stack.to_layers() for part in (layer, nn.Tanh())]
        return nn.Sequential(*layers, model.classifier)
    assert isinstance(model.layers, nn.Sequential)
    assert model.classifier is not None
    parts = [
        NaiveLayer(layer.block, layer.gate, relu=True) if isinstance(layer, HighwayConv2d) else layer
        for layer in model.layers
    ]
    return nn.Sequential(*parts, nn.Flatten(), model.classifier)
