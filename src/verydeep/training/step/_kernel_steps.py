"""Training steps that run in kernels as a whole: no Python between the batches of an epoch.

This is possible for fully connected networks that are trained by stochastic gradient descent, on data in memory, and
if nothing changes gradients or averages weights after every step. A step computes what `Trainer` does otherwise,
rounded in another way; a run therefore keeps to the way in which it began.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from verydeep.data import Batches, Dataset
from verydeep.kernels import TrainingSteps, UpdateRule, has_bfloat16
from verydeep.models import MLP
from verydeep.objectives import Classification, MultiLabel, Objective, Regression
from verydeep.training._config import TrainConfig
from verydeep.training.step._forward import autocast
from verydeep.training.step._loss import FusedLoss, TrainingLoss
from verydeep.training.step._process_group import ProcessGroup

_LONGEST = 0.5  # seconds that a call takes, about: only afterwards is anybody heard who asks to stop


class KernelSteps:
    """The steps of a run that kernels can train.

    Args:
        config: The run's configuration.
        model: The network.
        batches: The batches of its training data.
        objective: The task.
        optimiser: Stochastic gradient descent over the parameters of the network.
        context: Makes the context in which the network computes.
    """

    def __init__(
        self,
        config: TrainConfig,
        model: MLP,
        batches: Batches,
        objective: Objective,
        optimiser: torch.optim.Optimizer,
        context: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self.model, self.batches, self.objective, self.optimiser = model, batches, objective, optimiser
        self._context, self._momentum, self._nesterov = context, config.optim.momentum, config.optim.nesterov
        self._samples = batches.split.x.flatten(1).contiguous()
        self._targets = batches.split.y.float().view(len(self._samples), -1).contiguous()
        self._memory: dict[nn.Parameter, Tensor] = {}
        self._steps: dict[int, TrainingSteps] = {}  # by the size of the batch
        self._made_for: list[int] = []
        self._order: tuple[int, Tensor] = (-1, torch.empty(0))
        self._seconds = _LONGEST  # of a step

    @property
    def most(self) -> int:
        """How many steps a call should have, at most."""
        return max(1, int(_LONGEST / self._seconds))

    def can_run(self) -> bool:
        """Whether the network is still one that kernels can train: no hooks, no other data types."""
        with self._context():
            return self.model.can_train_in_kernels(self._samples[:1])

    def run(self, epoch: int, batch: int, factors: Sequence[float]) -> Tensor:
        """Train on some batches of an epoch.

        Args:
            epoch: Epochs completed.
            batch: Batches of this epoch completed.
            factors: The factor on the learning rate at each step.

        Returns:
            The sums of the objective for each batch, float64, `(batch, size)`.
        """
        began = time.perf_counter()
        self._prepare()
        if self._order[0] != epoch:
            self._order = epoch, self.batches.order(epoch)
        base = [group["base_lr"] for group in self.optimiser.param_groups]
        rates = torch.tensor([[factor * each for each in base] for factor in factors], dtype=torch.float64).float()
        sums: list[Tensor] = []
        for first, last in self._equal_batches(batch, batch + len(factors)):
            size = self.batches.size(first)
            order, position = self._order[1], first * self.batches.batch_size
            found = self._of_size(size).run(order, position, rates[first - batch : last - batch])
            rows = order[position : position + (last - first) * size]
            targets = self._targets[rows].view(last - first, size, -1)
            sums.append(self.objective.step_sums(found[:, 0], found[:, 1], targets))
        self._seconds = (time.perf_counter() - began) / len(factors)
        return torch.cat(sums)

    def _equal_batches(self, first: int, last: int) -> list[tuple[int, int]]:
        """The batches from `first` to `last - 1` in ranges of equal sizes: the last of an epoch may be smaller."""
        full = last if self.batches.size(last - 1) == self.batches.batch_size else last - 1
        return [(start, end) for start, end in ((first, full), (max(first, full), last)) if start < end]

    def _of_size(self, size: int) -> TrainingSteps:
        if size not in self._steps:
            with self._context():
                self._steps[size] = self.model.training_steps(
                    self._rules(), self._samples, self._targets, _kernel_loss(self.objective) or "", size
                )
        return self._steps[size]

    def _prepare(self) -> None:
        """Start from the optimiser's present memory; what was made for other memory is made again."""
        for group in self.optimiser.param_groups:
            for parameter in group["params"]:
                state: dict[str, Any] = self.optimiser.state[parameter]
                if self._momentum == 0:  # torch keeps no memory then, and ours is overwritten in every step
                    self._memory.setdefault(parameter, torch.zeros_like(parameter))
                else:
                    if state.get("momentum_buffer") is None:
                        state["momentum_buffer"] = torch.zeros_like(parameter)
                    self._memory[parameter] = state["momentum_buffer"]
        tensors = [*self._memory, *self._memory.values()]
        made_for = [*(tensor.data_ptr() for tensor in tensors), torch.get_num_threads()]
        if made_for != self._made_for:
            self._made_for = made_for
            self._steps.clear()

    def _rules(self) -> dict[nn.Parameter, UpdateRule]:
        return {
            parameter: UpdateRule(
                number, self._momentum, self._nesterov, group["weight_decay"], self._memory[parameter]
            )
            for number, group in enumerate(self.optimiser.param_groups)
            for parameter in group["params"]
        }


def make_kernel_steps(
    config: TrainConfig,
    model: nn.Module,
    dataset: Dataset,
    batches: Batches,
    loss: TrainingLoss,
    optimiser: torch.optim.Optimizer,
    group: ProcessGroup,
) -> KernelSteps | None:
    """The steps of a run in kernels; None if the run does something that kernels do not.

    Args:
        config: The run's configuration.
        model: The network.
        dataset: The data.
        batches: The batches of its training data.
        loss: What a step minimises.
        optimiser: The optimiser.
        group: The processes that train together.
    """
    usual = config.optim.name == "sgd" and config.optim.clip is None and config.ema_half_life is None
    alone = group.size == 1 and group.device.type == "cpu" and not config.compile
    split = dataset.train
    in_memory = type(split.x) is Tensor and split.x.dtype == torch.float32 and split.prepare is None
    if not (usual and alone and in_memory and type(model) is MLP and type(loss) in (FusedLoss, TrainingLoss)):
        return None
    if batches.augment or not batches.shuffle or _kernel_loss(loss.objective) is None or not _fits(model, dataset):
        return None
    if config.precision == "bfloat16" and not has_bfloat16():
        return None
    steps = KernelSteps(config, model, batches, loss.objective, optimiser, lambda: autocast(config, group.device))
    return steps if steps.can_run() else None


def _fits(model: MLP, dataset: Dataset) -> bool:
    """Whether the network has an output for every class, or for every target."""
    y, outputs = dataset.train.y, model.classifier.out_features
    return y.shape[1] == outputs if y.dim() == 2 else int(y.min()) >= 0 and int(y.max()) < outputs


def _kernel_loss(objective: Objective) -> str | None:
    """The name of the loss that kernels compute for an objective, if they do."""
    match objective:
        case Classification() if type(objective) is Classification and objective.is_plain:
            return "cross-entropy"
        case MultiLabel() if type(objective) is MultiLabel and objective.positive_weight is None:
            return "binary-cross-entropy"
        case Regression() if type(objective) is Regression and (objective.kind, objective.targets) == ("squared", 1):
            return "squared"
    return None
