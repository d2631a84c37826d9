"""Starting and resuming runs."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from verydeep.cpu import cpu_settings
from verydeep.data import Dataset, load_dataset
from verydeep.errors import UserError
from verydeep.files import read_json
from verydeep.lock import exclusive_lock
from verydeep.models import Network, build, create_model, read_architecture
from verydeep.training._config import TrainConfig
from verydeep.training._interrupt import interruptible
from verydeep.training._progress import TrainingProgress
from verydeep.training._trainer import Trainer
from verydeep.training.run._checkpoint import remove_old, set_aside
from verydeep.training.run._derived_run import parent_metadata
from verydeep.training.run._environment import changed_environment
from verydeep.training.run._metrics import RunSummary, best_epoch
from verydeep.training.run._run import Run, numbered_folder, require_free_folder, reserve_number
from verydeep.training.run._run_data import data_changes, fingerprint, write_data_json
from verydeep.training.run._state import Status
from verydeep.training.step._process_group import ProcessGroup
from verydeep.training.step._random import private_random_state, seeded


class Interrupted(Exception):  # noqa: N818 - not an error
    """Someone asked to stop; the run is saved and can be resumed."""

    def __init__(self, run: Run) -> None:
        super().__init__(f"interrupted and saved; continue with: verydeep train --resume {run.path}")
        self.run = run


def train(
    config: TrainConfig,
    path: str | Path | None = None,
    *,
    model: nn.Module | None = None,
    dataset: Dataset | None = None,
    loaded: Dataset | None = None,
    made_from: Run | None = None,
    root: str | Path | None = None,
    progress: TrainingProgress | None = None,
) -> Run:
    """Train a network and return its run.

    The thread count, the treatment of denormal numbers, torch's random state and the signal handlers of the process are
    the same afterwards as before, and none of them but the thread count affects the result.

    Args:
        config: What to train on what, and how.
        path: The run's folder, which must not exist or be empty; by default `runs/MODEL-DATA-N`.
        model: A module of your own that returns logits, in place of `config.model`.
        dataset: Data of your own, in place of `config.data`.
        loaded: The result of `load_dataset(config.data)`, so that many runs load it once.
        made_from: The run that `model` was pruned from.
        root: Where known datasets are kept.
        progress: What is shown; by default, only warnings.
    """
    group = ProcessGroup.join(config.device)
    user_supplied = [name for name, given in (("model", model), ("dataset", dataset)) if given is not None]
    with _private_settings(config.threads, group.device):
        number = 0
        with group.raise_together():
            if dataset is None:
                dataset = load_dataset(config.data, root) if loaded is None else loaded
            model = make_model(config, dataset) if model is None else model
            if path is None and group.rank == 0:
                number = reserve_number(config, dataset)
        folder = numbered_folder(config, dataset, group.from_rank0(number)) if path is None else Path(path)
        metadata = {"own": user_supplied, "data": fingerprint(dataset)} | parent_metadata(made_from)
        return _fit(Run(folder, config), model, dataset, group, progress or TrainingProgress(), metadata)


def resume(
    path: str | Path,
    *,
    model: nn.Module | None = None,
    dataset: Dataset | None = None,
    root: str | Path | None = None,
    progress: TrainingProgress | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> Run:
    """Continue a run that was interrupted or killed; a run that has ended is returned unchanged.

    Like `train`, it leaves the settings of the process alone.

    Args:
        path: The run's folder.
        model: The module of your own that the run was started with, if any.
        dataset: The data of your own that the run was started with, if any.
        root: Where known datasets are kept.
        progress: What is shown; by default, only warnings.
        device: Where to continue; by default, where the run was started.
        threads: CPU threads; by default, as many as the run was started with.
    """
    run = Run.load(path)
    if run.summary is not None:
        return run
    for name, given in (("model", model), ("dataset", dataset)):
        if given is None and name in run.user_supplied and not (name == "model" and run.is_network):
            raise UserError(f"{path} was started with a {name} of your own; in Python: resume(path, {name}=...)")
    group = ProcessGroup.join(device or run.config.device)
    with _private_settings(threads or run.config.threads, group.device):
        with group.raise_together():
            dataset = load_dataset(run.config.data, root) if dataset is None else dataset
            if changed := data_changes(run, dataset):
                raise UserError(f"{path}: the data has changed ({changed}); restore the old data, or start a new run")
            model = _remake_model(run, dataset) if model is None else model
        return _fit(run, model, dataset, group, progress or TrainingProgress())


def make_model(config: TrainConfig, dataset: Dataset) -> Network:
    """Create the network of a configuration for the data's samples and classes, initialised from the seed."""
    shape = tuple(dataset.train.x.shape[1:])
    overrides: dict[str, Any] = {"classes": len(dataset.classes), "input_shape": shape} | config.model.overrides()
    try:
        return seeded(config.seed, lambda: create_model(config.model.name, **overrides))
    except RuntimeError as error:
        if "memory" not in str(error):
            raise
        raise UserError(f"not enough memory for this {config.model.name}: {str(error).splitlines()[0]}") from error


@contextmanager
def _private_settings(threads: int | None, device: torch.device) -> Iterator[None]:
    """Settings of the process that hold inside this block only."""
    with cpu_settings(threads), private_random_state(device):
        yield


def _remake_model(run: Run, dataset: Dataset) -> Network:
    """The network of a run that is resumed; the weights of a user-supplied one are in the checkpoint alone."""
    if "model" not in run.user_supplied:
        return make_model(run.config, dataset)
    if not any((run.path / "checkpoint").glob("*.safetensors")):
        raise UserError(f"{run.path} was stopped before it saved the network it was given; start it again")
    return build(read_architecture(run.path))


def _fit(
    run: Run,
    model: nn.Module,
    dataset: Dataset,
    group: ProcessGroup,
    progress: TrainingProgress,
    metadata: dict[str, Any] | None = None,
) -> Run:
    """Train to the end. A run with `metadata` is new; its files are written once everything fits together."""
    progress = progress if group.rank == 0 else TrainingProgress()
    with ExitStack() as stack:
        with group.raise_together():
            if group.rank == 0:
                if metadata is not None:
                    require_free_folder(run.path)
                busy = f"{run.path} is being trained by another process"
                stack.enter_context(exclusive_lock(run.path / "lock", busy, wait=False))
            if run.config.checkpoint_activations:
                _checkpoint_activations(model)
            trainer = Trainer(run, model.to(group.device), dataset, group, progress)
            if metadata is not None and group.rank == 0:
                write_data_json(run, dataset)
                Run.create(run.path, run.config, model, metadata)
        _require_equal_start(trainer)
        try:
            _fit_locked(trainer)
        except UserError as error:
            if isinstance(error.__cause__, OSError):
                hint = f"the last checkpoint is intact, continue with: verydeep train --resume {run.path}"
                raise UserError(f"{error}; {hint}") from error
            raise
        group.barrier()
        return run


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
    if writes:
        run.finish(_summary(trainer, status))


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
    if position.epoch == 0 and run.metrics:
        progress.warn(f"{run.path / 'checkpoint'} has no checkpoint: training starts again from the beginning")
    missing = position.epoch - len(run.metrics)
    if missing > 0:
        progress.warn(f"{run.path / 'metrics.jsonl'} has lost {missing} epochs; the weights are not affected")
    run.truncate_metrics(position.epoch)
    changes = changed_environment(read_json(run.path / "environment.json"))
    for name, before, now in changes:
        run.log(f"{name} was {before} and is {now}")
        progress.warn(f"{name} was {before} and is {now}: the result may differ in the last digits")
    if changes:
        run.write_environment()
    for checkpoint, problem in trainer.state.problems.items():
        set_aside(checkpoint)
        run.log(f"skipped a checkpoint: {problem}")
        progress.warn(f"{problem}; continuing from the one before, after {position.epoch} epochs")
    remove_old(run.path / "checkpoint")
    run.log(f"training from epoch {position.epoch} batch {position.batch}")


def _checkpoint_activations(model: nn.Module) -> None:
    if not isinstance(model, Network):
        raise UserError("checkpoint_activations needs one of our networks; your own module must recompute them itself")
    model.checkpoint_activations()


def _summary(trainer: Trainer, status: Status) -> RunSummary:
    metrics = trainer.run.metrics
    return RunSummary(
        status,
        epochs=trainer.state.position.epoch,
        last=metrics[-1] if metrics else None,
        best=best_epoch(metrics[:-1] if status == "diverged" else metrics),
        parameters=sum(p.numel() for p in trainer.model.parameters()),
    )
