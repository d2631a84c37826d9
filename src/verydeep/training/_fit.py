"""From a run, its network and its data to the end of training: the folder, what is shown, and how it ended."""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from torch import nn

from verydeep.data import Dataset
from verydeep.errors import UserError
from verydeep.files import read_json
from verydeep.lock import exclusive_lock
from verydeep.models import Network, load_weights
from verydeep.training._config import TrainConfig
from verydeep.training._extend import describe_stretch
from verydeep.training._initial_weights import InitialWeights
from verydeep.training._interrupt import interruptible
from verydeep.training._objective import OwnMetrics
from verydeep.training._threads import ChosenThreads
from verydeep.training._trainer import Trainer
from verydeep.training.progress._progress import TrainingProgress
from verydeep.training.progress._summary_lines import summary_lines
from verydeep.training.run._checkpoint import has_checkpoint, remove_newer, remove_old, set_aside
from verydeep.training.run._environment import changed_environment
from verydeep.training.run._metrics import EpochMetrics, RunSummary, best_epoch
from verydeep.training.run._run import Run, require_free_folder
from verydeep.training.run._run_data import write_data_json
from verydeep.training.run._state import Status
from verydeep.training.step._process_group import ProcessGroup
from verydeep.words import plural


class Interrupted(Exception):  # noqa: N818 - not an error
    """Someone asked to stop, with Ctrl-C or SIGTERM. The run is saved, and `resume` continues it.

    Attributes:
        run: The run.

    Example:
        >>> from verydeep.training import Interrupted, TrainConfig, resume, train
        >>> def train_or_save(config: TrainConfig) -> None:
        ...     try:
        ...         train(config)
        ...     except Interrupted as stopped:
        ...         print(f"saved; resume({str(stopped.run.path)!r}) continues")
    """

    def __init__(self, run: Run) -> None:
        super().__init__(f"training was interrupted; {run.path} is saved and can be resumed")
        self.run = run


@dataclass(frozen=True)
class Start:
    """What is written into the folder of a new run."""

    metadata: dict[str, Any]
    initial: InitialWeights | None
    threads: ChosenThreads | None  # None if their number was given


@dataclass(frozen=True)
class NewTotal:
    """A change of the number of epochs: the configuration before, and whether the run had ended with it."""

    before: TrainConfig
    ended: bool


def fit_run(
    run: Run,
    model: nn.Module,
    dataset: Dataset,
    group: ProcessGroup,
    progress: TrainingProgress,
    own: OwnMetrics,
    start: Start | None = None,
    change: NewTotal | None = None,
) -> Run:
    """Train to the end. Files are written once everything fits together.

    Args:
        run: The run, with the configuration to train with.
        model: The network.
        dataset: The data.
        group: The processes that train together.
        progress: What is shown.
        own: The user's objective and metrics.
        start: The first files of a new run.
        change: A change of the number of epochs of a run that is resumed.
    """
    progress = progress if group.rank == 0 else TrainingProgress()
    with ExitStack() as stack:
        with group.raise_together():
            if group.rank == 0:
                if start is not None:
                    require_free_folder(run.path)
                busy = f"{run.path} is being trained by another process"
                stack.enter_context(exclusive_lock(run.path / "lock", busy, wait=False))
            if run.config.checkpoint_activations:
                _checkpoint_activations(model)
            trainer = Trainer(run, model.to(group.device), dataset, group, progress, own)
            if start is not None and group.rank == 0:
                write_data_json(run, dataset)
                initial = start.initial
                recorded = None if initial is None else {"path": initial.source, "sha256": initial.digest}
                Run.create(run.path, run.config, model, start.metadata, recorded)
            if group.rank == 0 and (trainer.state.position.epoch, trainer.state.position.batch) == (0, 0):
                is_own = "dataset" in run.user_supplied
                threads = None if start is None else start.threads
                progress.summary(summary_lines(run.config, model, dataset, len(trainer.batches), is_own, threads))
            if start is not None and start.initial is not None and group.rank == 0:
                _note(trainer, start.initial.describe())
            if change is not None:
                _change_total(trainer, change)
        _require_equal_start(trainer)
        try:
            _fit_locked(trainer)
        except UserError as error:
            if isinstance(error.__cause__, OSError | RuntimeError):  # the disk is full, or another process is gone
                raise UserError(f"{error}; the last checkpoint is intact, and {run.path} can be resumed") from error
            raise
        group.barrier()
        return run


def _change_total(trainer: Trainer, change: NewTotal) -> None:
    """Give a run another number of epochs; what was trained so far is kept."""
    run, state, before = trainer.run, trainer.state, change.before
    if change.ended and state.position.epoch == 0:
        raise UserError(f"{run.path} has no checkpoint to continue from; start a new run from its weights with init")
    state.restart_patience(before)
    if trainer.group.rank == 0:
        run.change_config(patience_from=state.patience_from)
        run.log(f"continued to {run.config.epochs} epochs instead of {before.epochs}")
        if before.epochs != run.config.epochs and (stretched := describe_stretch(run.config)):
            _note(trainer, stretched)


def _note(trainer: Trainer, message: str) -> None:
    trainer.run.log(message)
    trainer.progress.note(message)


def _fit_locked(trainer: Trainer) -> None:
    """Train while no other process can write to the run's folder."""
    run, writes = trainer.run, trainer.group.rank == 0
    if writes:
        _clean_folder(trainer)
    try:
        with interruptible() as interrupt:
            status = trainer.fit(interrupt)
    finally:
        trainer.progress.close()
    if writes:
        run.log(status)
    if status == "interrupted":
        raise Interrupted(run)
    tested = _test_at_end(trainer)
    if writes:
        run.finish(_summary(trainer, status, tested))


def _test_at_end(trainer: Trainer) -> dict[str, float]:
    """Evaluate the saved weights on the test set once, if the configuration asks for it."""
    model, saved = trainer.model, trainer.run.path / "model.safetensors"
    if trainer.run.config.evaluate_test != "end" or not trainer.group.any_rank(saved.exists()):
        return {}
    trainer.group.barrier()
    last = {name: value.clone() for name, value in model.state_dict().items()}
    load_weights(model, saved)
    try:
        return trainer.evaluate("test", trainer.dataset.test)
    finally:
        model.load_state_dict(last)


def _require_equal_start(trainer: Trainer) -> None:
    """Make all processes start from the same position and weights."""
    group, position = trainer.group, trainer.state.position
    equal = group.all_equal(position.epoch) and group.all_equal(position.batch)
    with group.raise_together():
        if not equal:
            raise UserError(
                f"the processes read different checkpoints: {trainer.run.path} must be on a disk they share"
            )
    group.broadcast_model(trainer.model)  # a user-supplied module may differ between them


def _clean_folder(trainer: Trainer) -> None:
    """Bring the folder in line with the checkpoint that training continues from."""
    run, position, progress = trainer.run, trainer.state.position, trainer.progress
    run.remove_partial_files()
    if run.metrics and not has_checkpoint(run.path / "checkpoint"):
        progress.warn(f"{run.path / 'checkpoint'} has no checkpoint: training starts again from the beginning")
    missing = position.epoch - len(run.metrics)
    if missing > 0:
        lost = plural(missing, "epoch")
        progress.warn(f"{run.path / 'metrics.jsonl'} is missing {lost}; the weights are not affected")
    run.truncate_metrics(position.epoch)
    recorded = read_json(run.path / "environment.json")
    changes = changed_environment(recorded)
    for name, before, now in changes:
        run.log(f"{name} was {before} and is {now}")
        progress.warn(f"{name} was {before} and is {now}: the result may differ in the last digits")
    if changes:
        run.write_environment(recorded.get("init"))
    for checkpoint, problem in trainer.state.problems.items():
        set_aside(checkpoint)
        run.log(f"skipped a checkpoint: {problem}")
        progress.warn(f"{problem}; continuing from the one before, after {plural(position.epoch, 'epoch')}")
    if remove_newer(run.path / "checkpoint", position):
        again = plural(position.epoch, "epoch")
        progress.warn(f"{run.path / 'metrics.jsonl'} was damaged: what it lacks is trained again, after {again}")
    remove_old(run.path / "checkpoint")
    run.log(f"training from epoch {position.epoch} batch {position.batch}")


def _checkpoint_activations(model: nn.Module) -> None:
    if not isinstance(model, Network):
        raise UserError("checkpoint_activations needs a verydeep network; in your module, use torch.utils.checkpoint")
    model.checkpoint_activations()


def _summary(trainer: Trainer, status: Status, tested: dict[str, float]) -> RunSummary:
    metrics = trainer.run.metrics
    kept = metrics[:-1] if status == "diverged" else metrics
    best = best_epoch(kept, trainer.run.selection)
    last = metrics[-1] if metrics else None
    if tested and best is not None:
        best = EpochMetrics.from_dict(best.to_dict() | tested)
    elif tested and last is not None:
        last = EpochMetrics.from_dict(last.to_dict() | tested)
    return RunSummary(
        status,
        epochs=trainer.state.position.epoch,
        last=last,
        best=best,
        parameters=sum(p.numel() for p in trainer.model.parameters()),
    )
