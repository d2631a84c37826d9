"""Where a training run stands, in memory and on disk."""

import time
from typing import Literal

import torch
from torch import Tensor, nn

from verydeep.float64 import float64_device
from verydeep.training._config import TrainConfig
from verydeep.training.run._metrics import EpochMetrics, Selection
from verydeep.training.run._run import Run
from verydeep.training.run._snapshots import save_snapshot, snapshot_epochs
from verydeep.training.step._average import WeightAverage, averaged_weights
from verydeep.training.step._loss import TrainingLoss
from verydeep.training.step._process_group import ProcessGroup

_PAUSE = 2.0  # seconds between checkpoints after epochs: writing one takes longer than a short epoch
Status = Literal["finished", "stopped early", "diverged", "interrupted"]


class RunState:
    """The position of a training run, restored from its newest checkpoint and saved to the next ones.

    Attributes:
        position: Where training stands.
        totals: What the objective adds up over this process's samples of the current epoch; float64, `(size,)`.
        problems: What is wrong with each checkpoint that had to be skipped.
        patience_from: The epoch from which patience counts, if the best one was before.
    """

    def __init__(
        self,
        run: Run,
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        loss: TrainingLoss,
        average: WeightAverage | None,
        group: ProcessGroup,
        selection: Selection,
    ) -> None:
        self._selection = selection
        self._run, self._model, self._optimiser, self._average, self._group = run, model, optimiser, average, group
        self._extra_tensors = loss.tensors | ({} if average is None else average.tensors)
        self.position, self.problems = run.load_checkpoint(model, optimiser, self._extra_tensors)
        # Only one process starts from the sums of the checkpoint, because all processes are added up later.
        self.totals = torch.zeros(loss.objective.size, dtype=torch.float64, device=float64_device(group.device))
        if group.rank == 0 and self.position.sums:
            self.totals += torch.tensor(self.position.sums, dtype=torch.float64, device=self.totals.device)
        self.patience_from = run.patience_from
        self._counted = self._saved = time.perf_counter()
        # What is written with the next checkpoint.
        self._lines: list[EpochMetrics] = []
        self._weights: dict[str, Tensor] | None = None
        self._snapshots: dict[int, dict[str, Tensor]] = {}

    def status(self) -> Status | None:
        """How training has ended, or None if it has not; this follows from the position, so it survives a kill."""
        position, config = self.position, self._run.config
        if position.diverged:
            return "diverged"
        if position.epoch >= config.epochs:
            return "finished"
        return "stopped early" if self._is_out_of_patience(config) else None

    def restart_patience(self, before: TrainConfig) -> None:
        """Let a run that stopped early with its former configuration continue."""
        if self.position.epoch < before.epochs and self._is_out_of_patience(before):
            self.patience_from = self.position.epoch

    def _is_out_of_patience(self, config: TrainConfig) -> bool:
        since = max(self.position.best_epoch, self.patience_from)
        return config.patience not in (None, 0) and self.position.epoch - since >= config.patience

    def finish_epoch(self, metrics: EpochMetrics, has_validation: bool, stop: bool) -> None:
        """Note metrics and the best weights; write them with a checkpoint if training ends or the last one is old.

        What is in the run's folder always belongs to the same epoch. After a crash, later ones are trained again.

        Args:
            metrics: The metrics of the epoch.
            has_validation: Whether the best weights are selected on validation data; otherwise the last are saved.
            stop: Whether training stops here although it has not ended.
        """
        position = self.position
        position.epoch, position.batch, position.sums = position.epoch + 1, 0, ()
        self.totals.zero_()
        best = not position.diverged and self._is_best(metrics)
        if self._group.rank == 0:
            self._lines.append(metrics)
            if best or not (has_validation or position.diverged):
                self._weights = self._copy_weights()
            if not position.diverged:
                self._take_snapshot()
        # After every epoch, so that results do not depend on when a checkpoint is written.
        self._synchronise()
        if stop or self.status() is not None or self._is_due(min(_PAUSE, self._run.config.checkpoint_every)):
            self._write()

    def _copy_weights(self) -> dict[str, Tensor]:
        """The weights that are evaluated and saved."""
        with averaged_weights(self._average):
            return {name: value.detach().clone() for name, value in self._model.state_dict().items()}

    def _take_snapshot(self) -> None:
        """Keep the weights if the configuration asks for them at this epoch."""
        config, epoch = self._run.config, self.position.epoch
        if epoch in snapshot_epochs(config.epochs, config.snapshots):
            self._snapshots[epoch] = self._copy_weights()

    def save_start(self) -> None:
        """Write a checkpoint before the first step."""
        if self._group.rank == 0:
            self._take_snapshot()
        self.save()

    def save_if_due(self) -> None:
        """Write a checkpoint within an epoch if the last one is older than `checkpoint_every`."""
        if self._group.any_rank(self._is_due(self._run.config.checkpoint_every)):
            self.save()

    def _is_due(self, pause: float) -> bool:
        """Whether the last checkpoint is older than a number of seconds; only the process that writes decides."""
        return self._group.rank == 0 and time.perf_counter() - self._saved > pause

    def save(self) -> None:
        """Write a checkpoint of what all processes have done."""
        self._synchronise()
        self._write()

    def save_finished_epochs(self) -> None:
        """Write a checkpoint after an epoch, unless it has been written; for the process that writes alone."""
        if self._lines:
            self._write()

    def _synchronise(self) -> None:
        """Give all processes the same weights, and add up what they have counted."""
        self._group.broadcast_model(self._model)  # Muon's products are rounded differently on different machines
        self.average_buffers()
        self.position.sums = tuple(self.sum_totals().tolist()) if self.position.batch else ()

    def _write(self) -> None:
        """Write metrics, the best weights, then the checkpoint: it never lacks what the others hold."""
        self.count_seconds()
        if self._group.rank == 0:
            if self._lines:
                self._run.append(*self._lines)
            if self._weights is not None:
                self._run.save_weights(self._weights)
            for epoch, weights in self._snapshots.items():
                save_snapshot(self._run.path, epoch, weights)
            self._run.save_checkpoint(self._model, self._optimiser, self.position, self._extra_tensors)
        self._lines, self._weights, self._snapshots = [], None, {}
        self._saved = time.perf_counter()

    def sum_totals(self) -> Tensor:
        """What the objective adds up over the current epoch, summed over the samples of all processes."""
        return self._group.sum(self.totals.clone())

    def average_buffers(self) -> None:
        """Average over the processes, each of which has seen its own samples, in the weights and in their average."""
        self._group.average_buffers(self._model)
        if self._average is not None:
            with self._average.in_place():
                self._group.average_buffers(self._model)

    def count_seconds(self) -> None:
        """Add the time since the last call to the position."""
        now = time.perf_counter()
        self.position.seconds += now - self._counted
        self._counted = now

    def _is_best(self, metrics: EpochMetrics) -> bool:
        """Whether no earlier epoch was better on validation data, or as good with a loss as low."""
        position, value, loss = self.position, self._selection.value(metrics), metrics.valid_loss
        if value is None or loss is None:
            return False
        if position.best is None or value > position.best:
            position.best, position.best_epoch, position.best_loss = value, position.epoch, loss
            return True
        if value == position.best and loss < (position.best_loss or 0.0):
            position.best_loss = loss
            return True
        return False
