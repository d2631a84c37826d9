"""Training, from top to bottom.

What a step does follows from the configuration and its position (seed, epoch, batch) alone: the order of samples, the
augmentation, dropout and the learning rate. So a run that was killed continues to the very same weights.
"""

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import torch
from torch import Tensor, nn

from verydeep.data import Batches, Dataset
from verydeep.errors import UserError
from verydeep.models import MLP, Network, save_weights
from verydeep.training._average import Average
from verydeep.training._checkpoint import Position, load_checkpoint, save_checkpoint
from verydeep.training._evaluate import evaluate, pair
from verydeep.training._hints import Distillation
from verydeep.training._interrupt import Interrupt
from verydeep.training._objective import FusedObjective, Objective, stage
from verydeep.training._optim import add_parameters, make_optimiser, set_rate
from verydeep.training._report import Report
from verydeep.training._run import Run
from verydeep.training._schedule import rate
from verydeep.training._seed import seed_step
from verydeep.training._teacher import load_teacher
from verydeep.training._world import FlatGradients, ProcessGroup

Status = Literal["finished", "stopped early", "diverged", "interrupted"]
_LOOK_EVERY = 50  # steps between looks at the loss: on a GPU, or among several processes, looking means waiting


class Trainer:
    """One run: a model, its data, and where it stands."""

    def __init__(self, run: Run, model: nn.Module, dataset: Dataset, world: ProcessGroup, report: Report) -> None:
        self.run, self.model, self.dataset, self.world, self.report = run, model, dataset, world, report
        self.config = config = run.config
        if config.patience is not None and dataset.valid is None:
            raise UserError("patience needs validation data: set data.validation, for example to 0.1")
        if isinstance(model, Network) and not dataset.train.prepared(dataset.train.x[:1]).is_floating_point():
            raise UserError("data.preprocess = 'none' leaves bytes as they are, and networks need numbers: use 'scale'")
        self.batches = Batches(
            dataset.train,
            config.batch_size,
            seed=config.seed,
            augment=config.data.augment,
            rank=world.rank,
            world_size=world.size,
        )
        self.forward = self._forward()
        self.objective = self._objective()
        self.optimiser = make_optimiser(model, config.optim)
        if self.objective.extra is not None:
            add_parameters(self.optimiser, self.objective.extra, config.optim)
        self.updated = [parameter for group in self.optimiser.param_groups for parameter in group["params"]]
        self.average = (
            Average(model, config.ema_half_life * len(self.batches)) if config.ema_half_life is not None else None
        )
        self.more = self.objective.tensors | (self.average.tensors if self.average is not None else {})
        self.position, self.problems = load_checkpoint(run.path / "checkpoint", model, self.optimiser, self.more)
        self.gradients = FlatGradients(model, world)
        self.totals = self._totals()
        self.ticked = self.saved = time.perf_counter()
        self.stopping = False

    def fit(self, interrupt: Interrupt) -> Status:
        """Train from the last checkpoint to the end."""
        self.report.start(self.run, self.position, len(self.batches))
        if self.position == Position():
            self.save()  # initial weights of a module of the user's own could not be made again
        while (status := self.ended()) is None:
            done = self.train_epoch(interrupt)
            if done:
                self.finish_epoch(self.measure())
            else:
                self.save()
            if self.stopping and self.ended() is None:
                return "interrupted"
        return status

    def ended(self) -> Status | None:
        """How training ended, if it has; it follows from the position, so that it survives a kill."""
        position, config = self.position, self.config
        if position.diverged:
            return "diverged"
        if position.epoch >= config.epochs:
            return "finished"
        if config.patience is not None and position.epoch - position.best_epoch >= config.patience:
            return "stopped early"
        return None

    def train_epoch(self, interrupt: Interrupt) -> bool:
        """The rest of the present epoch, one step a batch; False when interrupted before its end."""
        config, position, device = self.config, self.position, self.world.device
        self.model.train()
        totals = self.totals
        first, length = stage(config, position.epoch)
        if position.epoch == first and position.batch == 0:
            self.optimiser.state.clear()  # nothing is there before the first stage, and the second starts afresh
            if self.objective.extra is not None:
                self.objective.extra.zero_grad()
        for x, y in self.batches.epoch(position.epoch, position.batch):
            progress = (position.epoch - first + position.batch / len(self.batches)) / length
            set_rate(self.optimiser, rate(config.schedule, (position.epoch - first) * config.epochs / length, progress))
            seed_step(config.seed, position.epoch, position.batch, self.world)

            self.gradients.clear()
            scale = 1 / self.batches.size(position.batch)  # of the mean loss
            loss, right = self.objective.descend(x.to(device), y.to(device), scale, position, progress)
            last = position.batch + 1 == len(self.batches)
            look = last or (position.batch + 1) % _LOOK_EVERY == 0
            self.stopping = self.gradients.share(interrupt.requested, look)
            if config.optim.clip is not None:
                nn.utils.clip_grad_norm_(self.updated, config.optim.clip)
            self.optimiser.step()
            if self.average is not None:
                self.average.follow(position.epoch * len(self.batches) + position.batch)

            found = pair(loss, right)
            totals += found
            position.batch += 1
            if look and self.world.agree(self._exploded(loss, len(y))):
                position.diverged = True
                break
            if not last and self.stopping:
                return False
            if not last and look and self.world.agree(time.perf_counter() - self.saved > config.checkpoint_every):
                self.save()
            self.report.step(position, found, len(y), self.optimiser.param_groups[0]["lr"])
        return True

    def measure(self) -> dict[str, Any]:
        """What is known after an epoch."""
        self._mean_buffers()
        loss, correct = self.world.total(self.totals.clone()).tolist()
        seen = min(self.position.batch * self.config.batch_size, len(self.dataset.train))
        metrics = {
            "epoch": self.position.epoch + 1,
            "lr": self.optimiser.param_groups[0]["lr"],
            "loss": loss / seen,
            "accuracy": correct / seen,
        }
        splits = {"train": self.config.evaluate_train, "valid": True, "test": self.config.evaluate_test}
        for name, wanted in splits.items():
            split = getattr(self.dataset, name)
            if wanted and split is not None and not self.position.diverged:
                with self._averaged():
                    result = evaluate(self.model, split, self.world, self.forward)
                metrics |= {f"{name}_loss": result.loss, f"{name}_accuracy": result.accuracy}
                self.position.diverged |= not math.isfinite(result.loss)  # by the epoch's last update
        self._tick()
        metrics["seconds"] = round(self.position.seconds, 3)
        return {name: value if math.isfinite(value) else None for name, value in metrics.items()}

    def finish_epoch(self, metrics: dict[str, Any]) -> None:
        """Record metrics, the best weights, then a checkpoint; after a crash in between, the epoch is trained again."""
        position = self.position
        position.epoch, position.batch, position.loss, position.correct = position.epoch + 1, 0, 0.0, 0
        self.totals.zero_()
        best = not position.diverged and self._is_best(metrics)
        if self.world.rank == 0:
            self.run.append(metrics)
            if best or (self.dataset.valid is None and not position.diverged):
                with self._averaged():
                    save_weights(self.model, self.run.path / "model.safetensors")
        self.save()
        self.report.epoch(metrics)

    def _is_best(self, metrics: dict[str, Any]) -> bool:
        """Whether no epoch before was more accurate on validation data, or as accurate at as low a loss."""
        position, accuracy, loss = self.position, metrics.get("valid_accuracy", -1.0), metrics.get("valid_loss")
        if accuracy > position.best:
            position.best, position.best_epoch, position.best_loss = accuracy, position.epoch, loss
            return True
        if accuracy == position.best and loss is not None and loss < (position.best_loss or 0.0):
            position.best_loss = loss
            return True
        return False

    def save(self) -> None:
        """Write a checkpoint."""
        self.world.same_start(self.model)  # Muon's products are rounded differently on different machines
        self._mean_buffers()
        loss, correct = self.world.total(self.totals.clone()).tolist()
        self.position.loss, self.position.correct = loss, int(correct)
        self._tick()
        if self.world.rank == 0:
            save_checkpoint(self.run.path / "checkpoint", self.model, self.optimiser, self.position, self.more)
        self.saved = time.perf_counter()

    def _tick(self) -> None:
        """Count the time spent since the last call."""
        now = time.perf_counter()
        self.position.seconds += now - self.ticked
        self.ticked = now

    def _mean_buffers(self) -> None:
        """What the processes have seen, each its own part, in the weights and in their average."""
        self.world.mean_buffers(self.model)
        if self.average is not None:
            with self.average.in_place():
                self.world.mean_buffers(self.model)

    def _averaged(self) -> AbstractContextManager[None]:
        """The model as it is measured and kept."""
        return self.average.in_place() if self.average is not None else nullcontext()

    def _logits(self, x: Tensor) -> Tensor:
        logits = self.forward(x)
        if logits.dim() != 2 or logits.shape[1] < len(self.dataset.classes):
            want = f"(batch, {len(self.dataset.classes)})"
            raise UserError(f"the module must return logits of shape {want}, one a class; got {tuple(logits.shape)}")
        return logits

    def _totals(self) -> Tensor:
        """Loss and right answers of the present epoch; what a checkpoint brought counts once among all processes."""
        before = [self.position.loss, self.position.correct] if self.world.rank == 0 else [0, 0]
        return torch.tensor(before, dtype=torch.float64, device=self.world.device)

    def _exploded(self, loss: Tensor, samples: int) -> bool:
        """Whether the last batch's loss is beyond hope; a blind guess has log(classes)."""
        mean = loss.item() / samples
        return not mean < self.config.divergence_factor * math.log(max(len(self.dataset.classes), 2))

    def _objective(self) -> Objective:
        if self.config.distill.teacher is None:
            if self.config.distill.hint_epochs:
                raise UserError("distill.hint_epochs needs distill.teacher, the folder of a finished run")
            return self._cross_entropy()
        if self.world.size > 1:
            raise UserError("learning from a teacher is for one process; start it without torchrun")
        teacher = load_teacher(self.config, len(self.dataset.classes)).to(self.world.device)
        objective = Distillation(self.config, self._logits, self.model, teacher, self._precision)
        if objective.extra is not None:
            objective.extra.to(self.world.device)
        return objective

    def _cross_entropy(self) -> Objective:
        model, classes = self.model, len(self.dataset.classes)
        plain = self.forward is model and not self.config.label_smoothing
        if plain and type(model) is MLP and model.classifier.out_features >= classes:
            return FusedObjective(self.config, model)
        return Objective(self.config, self._logits)

    def _precision(self) -> AbstractContextManager[object]:
        if self.config.precision == "float32":
            return nullcontext()
        return torch.autocast(self.world.device.type, torch.bfloat16)

    def _forward(self) -> Callable[[Tensor], Tensor]:
        model: Callable[[Tensor], Tensor] = torch.compile(self.model) if self.config.compile else self.model
        if self.config.precision == "float32":
            return model

        def in_bfloat16(x: Tensor) -> Tensor:
            with self._precision():
                return model(x)

        return in_bfloat16
