"""Training, from top to bottom: `fit` runs epochs, `train_epoch` runs steps, and `measure` evaluates after an epoch.

What a step does follows only from the configuration and its position (seed, epoch, batch): the order of samples, the
augmentation, dropout and the learning rate. So a run that was killed continues to exactly the same weights.
"""

import math

import torch
from torch import Tensor, nn

from verydeep.data import Batches, Dataset, Split
from verydeep.errors import UserError
from verydeep.models import Network
from verydeep.objectives import Totals
from verydeep.training._config import TrainConfig
from verydeep.training._interrupt import Interrupt
from verydeep.training._objective import OwnMetrics, make_objective, metrics_to_compute, select_by
from verydeep.training.evaluation._evaluate import evaluate, gather_rows
from verydeep.training.progress._progress import TrainingProgress
from verydeep.training.run._checkpoint import Position
from verydeep.training.run._metrics import EpochMetrics
from verydeep.training.run._run import Run
from verydeep.training.run._state import RunState, Status
from verydeep.training.step._average import WeightAverage, averaged_weights
from verydeep.training.step._forward import make_forward
from verydeep.training.step._kernel_steps import KernelSteps, make_kernel_steps
from verydeep.training.step._loss import make_loss
from verydeep.training.step._optimiser import clip_gradients, make_optimiser, set_learning_rate
from verydeep.training.step._process_group import FlatGradients, ProcessGroup
from verydeep.training.step._random import seed_step
from verydeep.training.step._schedule import Stage, learning_rate_factor

_SYNC_EVERY = 50  # steps between looks at the loss: on a GPU, or with several processes, looking means waiting


class Trainer:
    """Trains one model on one dataset, from the run's newest checkpoint to the end.

    Args:
        run: Where checkpoints and metrics go, and the configuration.
        model: The network, on the device of `group`.
        dataset: The data.
        group: The processes that train together.
        progress: What is shown.
        own: The user's objective and metrics.
    """

    def __init__(
        self,
        run: Run,
        model: nn.Module,
        dataset: Dataset,
        group: ProcessGroup,
        progress: TrainingProgress,
        own: OwnMetrics = OwnMetrics(),  # noqa: B008 - frozen
    ) -> None:
        _check_data(run.config, model, dataset)
        self.run, self.model, self.dataset, self.group, self.progress = run, model, dataset, group, progress
        config = run.config
        self.objective = own.objective or make_objective(config, dataset)
        self.metrics = metrics_to_compute(config, self.objective, dataset.task, own.metrics)
        self.batches = Batches(
            dataset.train,
            config.batch_size,
            seed=config.seed,
            augment=config.data.augment,
            rank=group.rank,
            world_size=group.size,
        )
        self.forward = make_forward(model, config, group.device)
        self.loss = make_loss(config, self.objective, model, self.forward, dataset.task, group)
        self.optimiser = make_optimiser(model, config.optim, self.loss.extra, config.companion.head_lr)
        half_life = config.ema_half_life
        self.average = None if half_life is None else WeightAverage(model, half_life * len(self.batches))
        selection = select_by(config, self.metrics)
        self.state = RunState(run, model, self.optimiser, self.loss, self.average, group, selection)
        self.gradients = FlatGradients(model, group)
        self.kernel_steps: KernelSteps | None = None
        if self.state.position == Position() or self.state.position.in_kernels:
            parts = self.batches, self.loss, self.optimiser, group
            self.kernel_steps = make_kernel_steps(config, model, dataset, *parts)

    def fit(self, interrupt: Interrupt) -> Status:
        """Train from the last checkpoint to the end, or until someone interrupts."""
        state = self.state
        self.progress.start(self.run, state.position, len(self.batches))
        if state.position == Position():
            state.position.in_kernels = self.kernel_steps is not None
            state.save_start()  # the initial weights of a user-supplied module could not be made again
        while (status := state.status()) is None:
            stop = self.train_epoch(interrupt)
            if state.position.diverged or state.position.batch == len(self.batches):
                metrics = self.measure()
                state.finish_epoch(metrics, self.dataset.valid is not None, stop)
                self._report(metrics)
            else:
                state.save()
            if stop and state.status() is None:
                return "interrupted"
        return status

    def _report(self, metrics: EpochMetrics) -> None:
        """Report an epoch; whoever pauses a training in response finds it saved."""
        try:
            self.progress.epoch(metrics)
        except BaseException:
            self.state.save_finished_epochs()
            raise

    def train_epoch(self, interrupt: Interrupt) -> bool:
        """Train the rest of the current epoch, one step per batch.

        Returns:
            Whether someone asked to stop, in which case the epoch may be incomplete.
        """
        config, state, position, device = self.run.config, self.state, self.state.position, self.group.device
        stage, stop = Stage.at(config, position.epoch), False
        if (position.epoch, position.batch) == (stage.first, 0):
            self._reset_optimiser()
        self.model.train()
        if self.kernel_steps is not None and self.kernel_steps.can_run():
            return self._train_in_kernels(self.kernel_steps, stage, interrupt)
        for x, y in self.batches.epoch(position.epoch, position.batch):
            fraction = stage.fraction(position.epoch, position.batch, len(self.batches))
            set_learning_rate(self.optimiser, learning_rate_factor(config, stage, position.epoch, fraction))
            seed_step(config.seed, position.epoch, position.batch, self.group)

            self.gradients.zero()
            scale = 1 / self.batches.size(position.batch)  # from the sum over the batch to the mean
            loss, sums = self.loss.backward(x.to(device), y.to(device), scale, position.epoch, fraction)

            last = position.batch + 1 == len(self.batches)
            sync = last or (position.batch + 1) % _SYNC_EVERY == 0
            stop = self.gradients.all_reduce(interrupt.requested, sync)
            if config.optim.clip is not None:
                clip_gradients(self.optimiser, config.optim.clip)
            self.optimiser.step()
            if self.average is not None:
                self.average.update(position.epoch * len(self.batches) + position.batch)

            state.totals += sums
            position.batch += 1
            if self._ends_here(loss, len(y), sync, last, stop):
                break
            self.progress.step(position, sums[:2], len(y), self.optimiser.param_groups[0]["lr"])
        return stop

    def _train_in_kernels(self, steps: KernelSteps, stage: Stage, interrupt: Interrupt) -> bool:
        """Train the rest of the current epoch, up to fifty batches at a time."""
        config, state, position, batches = self.run.config, self.state, self.state.position, len(self.batches)
        stop = False
        while position.batch < batches:
            first = position.batch
            end = min(first - first % _SYNC_EVERY + _SYNC_EVERY, first + steps.most, batches)
            fractions = [stage.fraction(position.epoch, batch, batches) for batch in range(first, end)]
            factors = [learning_rate_factor(config, stage, position.epoch, each) for each in fractions]
            seed_step(config.seed, position.epoch, end - 1, self.group)
            sums = steps.run(position.epoch, first, factors)
            for factor, each in zip(factors, sums, strict=True):
                set_learning_rate(self.optimiser, factor)
                state.totals += each
                position.batch += 1
                samples = self.batches.size(position.batch - 1)
                self.progress.step(position, each[:2], samples, self.optimiser.param_groups[0]["lr"])
            stop, last = interrupt.requested, end == batches
            sync = last or end % _SYNC_EVERY == 0
            if self._ends_here(sums[-1, 0], self.batches.size(end - 1), sync, last, stop):
                break
        return stop

    def _ends_here(self, loss: Tensor, samples: int, sync: bool, last: bool, stop: bool) -> bool:
        """Whether the loss has diverged or someone stops the epoch; if not, a checkpoint is written when it is due."""
        if sync and self.group.any_rank(self._has_diverged(loss, samples)):
            self.state.position.diverged = True
            return True
        if stop and not last:
            return True
        if sync and not last:
            self.state.save_if_due()
        return False

    def measure(self) -> EpochMetrics:
        """The metrics of the epoch that was just trained."""
        config, state, position = self.run.config, self.state, self.state.position
        state.average_buffers()
        seen = min(position.batch * config.batch_size, len(self.dataset.train))
        trained = Totals(state.sum_totals(), seen, self.objective)
        measured: dict[str, float] = {}
        splits = {"train": config.evaluate_train, "valid": True, "test": config.evaluate_test == "epoch"}
        for name, wanted in splits.items():
            split = getattr(self.dataset, name)
            if wanted and split is not None and not position.diverged:
                with averaged_weights(self.average):
                    measured |= self.evaluate(name, split)
                position.diverged |= not math.isfinite(measured[f"{name}_loss"])  # the last update can make it infinite
        state.count_seconds()
        return EpochMetrics.from_dict(
            {
                "epoch": position.epoch + 1,
                "lr": self.optimiser.param_groups[0]["lr"],
                "loss": _finite_or_infinite(trained.loss),
                self.objective.measure: trained.score,
                "seconds": round(position.seconds, 3),
                **measured,
            }
        )

    def evaluate(self, name: str, split: Split) -> dict[str, float]:
        """Loss, score and metrics of the present weights on a split, under their names in metrics.jsonl."""
        outputs: list[Tensor] = []
        wanted = self.metrics if name != "train" else ()
        observe = (lambda batch, _y: outputs.append(batch.cpu())) if wanted else None
        result = evaluate(self.model, split, self.group, self.forward, self.objective, observe)
        measured = {f"{name}_loss": _finite_or_infinite(result.loss), f"{name}_{self.objective.measure}": result.score}
        if wanted:
            everything = gather_rows(torch.cat(outputs), len(split), self.group)
            task = self.dataset.task
            measured |= {f"{name}_{each.name}": each(everything, split.y, self.objective, task) for each in wanted}
        return measured

    def _reset_optimiser(self) -> None:
        """Each stage starts with a fresh optimiser; at the start of the first one there is nothing to reset."""
        self.optimiser.state.clear()
        if self.loss.extra is not None:
            self.loss.extra.zero_grad()

    def _has_diverged(self, loss: Tensor, samples: int) -> bool:
        """Whether the last batch's loss is far above that of a blind guess, or not a number."""
        mean = loss.item() / samples
        return not mean < self.run.config.divergence_factor * self.objective.guess_loss(self.dataset.task.outputs)


def _finite_or_infinite(loss: float) -> float:
    return loss if math.isfinite(loss) else math.inf


def _check_data(config: TrainConfig, model: nn.Module, dataset: Dataset) -> None:
    if config.patience and dataset.valid is None:
        raise UserError("patience needs validation data: set data.validation, for example to 0.1")
    if any(parameter.is_inference() for parameter in model.parameters()):
        raise UserError("the model was created inside torch.inference_mode() and cannot be trained; create it outside")
    if not isinstance(model, Network):
        return
    samples = dataset.train.prepared(dataset.train.x[:1])
    if not samples.is_floating_point():
        raise UserError("the samples are uint8 because data.preprocess is 'none'; use 'scale' to convert them to float")
    if samples.dtype != (dtype := next(model.parameters()).dtype):
        ours, theirs = (str(each).removeprefix("torch.") for each in (dtype, samples.dtype))
        raise UserError(f"the model has {ours} parameters, but the samples are {theirs}; convert one of them")
