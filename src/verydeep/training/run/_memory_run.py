"""A training run that leaves no files: metrics, the saved weights and the state to continue from stay in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from verydeep.training._config import TrainConfig
from verydeep.training.run._checkpoint import Position
from verydeep.training.run._metrics import EpochMetrics
from verydeep.training.run._run import Run


@dataclass(frozen=True)
class TrainingState:
    """Where a training stands, so that another one can continue from there.

    Attributes:
        epochs: Epochs completed.
        optimiser: The optimiser's tensors, by parameter and name.
        in_kernels: Whether kernels compute whole steps, as in `Position`.
    """

    epochs: int = 0
    optimiser: Mapping[int, Mapping[str, Tensor]] = field(default_factory=dict)
    in_kernels: bool = False


class MemoryRun(Run):
    """A run in memory, for trainings of a second, of which writing files would be the larger part.

    Args:
        config: The configuration.
        start: Where an earlier training of the same network stopped.
    """

    def __init__(self, config: TrainConfig, start: TrainingState | None = None) -> None:
        super().__init__(Path("in memory"), config)
        self._start, self._lines = start or TrainingState(), list[EpochMetrics]()
        self._in_kernels = self._start.in_kernels
        self._optimiser: torch.optim.Optimizer | None = None
        self.weights: dict[str, Tensor] | None = None

    @property
    def metrics(self) -> list[EpochMetrics]:
        return self._lines

    @property
    def metadata(self) -> dict[str, Any]:
        return {}

    @property
    def patience_from(self) -> int:
        return 0

    @property
    def state(self) -> TrainingState:
        """Where it stands, after training."""
        assert self._optimiser is not None
        epochs = self._start.epochs + len(self._lines)
        return TrainingState(epochs, self._optimiser.state_dict()["state"], self._in_kernels)

    def append(self, *lines: EpochMetrics) -> None:
        self._lines += lines

    def load_checkpoint(
        self, model: nn.Module, optimiser: torch.optim.Optimizer, extra_tensors: Mapping[str, Tensor]
    ) -> tuple[Position, dict[Path, str]]:
        self._optimiser = optimiser
        groups = optimiser.state_dict()["param_groups"]
        optimiser.load_state_dict({"state": dict(self._start.optimiser), "param_groups": groups})
        return Position(epoch=self._start.epochs, in_kernels=self._start.in_kernels), {}

    def save_checkpoint(
        self,
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        position: Position,
        extra_tensors: Mapping[str, Tensor],
    ) -> None:
        self._in_kernels = position.in_kernels

    def save_weights(self, weights: Mapping[str, Tensor]) -> None:
        self.weights = {name: value.detach().clone() for name, value in weights.items()}
