"""Companion losses on hidden layers (deeply supervised nets, Lee et al. 2015).

A linear classifier per layer predicts the target from the layer's values, and its loss is added to the network's:

    loss(outputs) + sum over layers of weight * loss(classifier(values of the layer))

After `companion.until` epochs only the first term is left. Lee et al. switch the companions off in the same way. Their
paper also ignores companion losses below a threshold, and their code lowers the learning rate of the companions over
time; ours does neither.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from verydeep.errors import UserError, unknown
from verydeep.models import Network
from verydeep.objectives import Objective
from verydeep.training._config import TrainConfig
from verydeep.training.step._loss import TrainingLoss
from verydeep.training.step._random import seeded


class CompanionLoss(TrainingLoss):
    """The loss of a network and of companions on its hidden layers.

    Args:
        config: The run's configuration.
        objective: The task.
        network: The network.
        alone: The network's loss without companions.
        autocast: Makes the context in which the network computes.
    """

    def __init__(
        self,
        config: TrainConfig,
        objective: Objective,
        network: Network,
        alone: TrainingLoss,
        autocast: Callable[[], AbstractContextManager[object]],
    ) -> None:
        super().__init__(objective, alone.forward)
        self.network, self.alone, self.autocast = network, alone, autocast
        self.weight_of, self.last = config.companion.weight_of, config.companion.until
        self.companions = seeded(config.seed, lambda: _make_companions(network, list(self.weight_of)))
        self.extra = self.companions

    def __call__(self, x: Tensor, y: Tensor, epoch: int, fraction: float) -> tuple[Tensor, Tensor]:
        """The loss to minimise, and the sums of the objective, which are those of the network alone."""
        if self._are_off(epoch):
            return self.alone(x, y, epoch, fraction)
        self.companions.zero_grad()
        with self.autocast():
            outputs, values = self.network.forward_hidden(x, list(self.weight_of))
            answers = {layer: self.companions[layer](value.flatten(1)) for layer, value in values.items()}
        own = total = self.objective.training_loss(outputs, y)
        for layer, weight in self.weight_of.items():
            total = total + weight * self.objective.training_loss(answers[layer], y)
        return total, self.objective.sums(own, outputs, y)

    def backward(self, x: Tensor, y: Tensor, scale: float, epoch: int, fraction: float) -> tuple[Tensor, Tensor]:
        if self._are_off(epoch):
            self.companions.zero_grad()
            return self.alone.backward(x, y, scale, epoch, fraction)
        return super().backward(x, y, scale, epoch, fraction)

    def _are_off(self, epoch: int) -> bool:
        return self.last is not None and epoch >= self.last


def check_companions(config: TrainConfig, model: nn.Module, processes: int) -> Network:
    """The network, if it can have the companions that are configured."""
    if not isinstance(model, Network):
        raise UserError("companion.hidden_layers needs one of verydeep's networks, not your own module")
    if processes > 1:
        raise UserError("companion losses need a single process; start the training without torchrun")
    names = model.hidden_layers()
    for layer in config.companion.hidden_layers:
        if layer not in names:
            raise unknown("layer in companion.hidden_layers", layer, names)
    return model


def _make_companions(network: Network, layers: list[str]) -> nn.ModuleDict:
    """A linear classifier for each layer, with Glorot's initial weights."""
    parameter = next(network.parameters())
    training = network.training
    with torch.no_grad():
        x = torch.zeros(1, *network.input_shape, dtype=parameter.dtype, device=parameter.device)
        outputs, values = network.eval().forward_hidden(x, layers)
    network.train(training)
    companions = nn.ModuleDict()
    for layer in layers:
        companion = nn.Linear(values[layer].numel(), outputs.shape[1], dtype=parameter.dtype)
        nn.init.xavier_uniform_(companion.weight)
        nn.init.zeros_(companion.bias)
        companions[layer] = companion
    return companions
