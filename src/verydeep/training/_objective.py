"""What a training step minimises."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from verydeep.models import MLP
from verydeep.training._checkpoint import Position
from verydeep.training._config import TrainConfig
from verydeep.training._evaluate import count_right, losses

Forward = Callable[[Tensor], Tensor]
Precision = Callable[[], AbstractContextManager[object]]


class Objective:
    """Cross-entropy, smoothed if asked.

    Args:
        config: The run's.
        logits: The network.
    """

    extra: nn.Module | None = None  # what is trained beside the network and thrown away afterwards

    def __init__(self, config: TrainConfig, logits: Forward) -> None:
        self.config, self.logits = config, logits

    def __call__(self, x: Tensor, y: Tensor, position: Position, progress: float) -> tuple[Tensor, Tensor]:
        """The sum over a batch, and how many samples are classified right.

        Args:
            x: Samples.
            y: Their classes.
            position: Where training stands.
            progress: The share of the present stage that is done.
        """
        return losses(self.logits(x), y, self.config.label_smoothing)

    def descend(self, x: Tensor, y: Tensor, scale: float, position: Position, progress: float) -> tuple[Tensor, Tensor]:
        """Backpropagate `scale` times the sum; the arguments and what is returned are those of a call."""
        loss, right = self(x, y, position, progress)
        loss.backward(loss.new_tensor(scale))
        return loss.detach(), right

    @property
    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint must hold."""
        state = {} if self.extra is None else self.extra.state_dict()
        return {f"extra.{name}": value for name, value in state.items()}


class FusedObjective(Objective):
    """Cross-entropy of a fully connected network, whose kernels go through a whole step: the same bits, sooner."""

    def __init__(self, config: TrainConfig, model: MLP) -> None:
        super().__init__(config, model)
        self.model = model

    def descend(
        self, x: Tensor, y: Tensor, scale: float, _position: Position, _progress: float
    ) -> tuple[Tensor, Tensor]:
        loss, logits = self.model.backward_cross_entropy(x, y, scale)
        return loss, count_right(logits, y)


def stage(config: TrainConfig, epoch: int) -> tuple[int, int]:
    """The stage an epoch belongs to: its first epoch and its length; only training with hints has two."""
    hints = config.distill.hint_epochs
    return (0, hints) if epoch < hints else (hints, config.epochs - hints)


def seeded(seed: int, make: Callable[[], nn.Module]) -> nn.Module:
    """A module whose initial weights follow from a seed, whatever was drawn before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()
