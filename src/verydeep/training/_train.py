"""Starting and resuming runs."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

import torch
from torch import nn

from verydeep.cpu import cpu_settings
from verydeep.data import Dataset, load_dataset
from verydeep.errors import UserError
from verydeep.files import read_json
from verydeep.lock import exclusive_lock
from verydeep.models import Network, build, create_model, load_weights, read_architecture
from verydeep.objectives import Metric, Objective
from verydeep.training._config import TrainConfig
from verydeep.training._continue import chosen_settings, run_to_continue
from verydeep.training._defaults import choose_settings, hold_out_validation, is_paper_dataset, suggest_threads
from verydeep.training._extend import check_new_total, describe_stretch
from verydeep.training._initial_weights import InitialWeights, load_initial_weights
from verydeep.training._interrupt import interruptible
from verydeep.training._objective import OwnMetrics, make_objective, metrics_to_compute
from verydeep.training._progress import TrainingProgress, choose_progress
from verydeep.training._summary_lines import summary_lines
from verydeep.training._trainer import Trainer
from verydeep.training.run._checkpoint import has_checkpoint, remove_old, set_aside
from verydeep.training.run._derived_run import parent_metadata
from verydeep.training.run._environment import changed_environment
from verydeep.training.run._metrics import EpochMetrics, RunSummary, best_epoch
from verydeep.training.run._run import Run, numbered_folder, require_free_folder, reserve_number
from verydeep.training.run._run_data import data_changes, fingerprint, write_data_json
from verydeep.training.run._state import Status
from verydeep.training.step._process_group import ProcessGroup
from verydeep.training.step._random import private_random_state, seeded
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


def train(
    config: TrainConfig,
    path: str | Path | None = None,
    *,
    resume: bool = False,
    model: nn.Module | None = None,
    dataset: Dataset | None = None,
    loaded: Dataset | None = None,
    made_from: Run | None = None,
    objective: Objective | None = None,
    metrics: Sequence[Metric] = (),
    root: str | Path | None = None,
    progress: TrainingProgress | bool | None = True,
) -> Run:
    """Train a network and return its run.

    The thread count, the treatment of denormal numbers, torch's random state, default dtype and gradient mode, and the
    signal handlers of the process are the same afterwards as before. Only the thread count affects the result.

    Args:
        config: The network, the data and the training settings.
        path: The run's folder, which must be new or empty; by default `runs/MODEL-DATA-N`.
        resume: The folder may hold this run already: an unfinished run is continued, and one that has finished, stopped
            early or diverged is returned unchanged. So a script that was killed can be started again. The settings must
            be those that the run was started with, except for `device`, `threads` and how paths are written.
        model: Your own module, which returns logits, in place of `config.model`.
        dataset: Your own data, in place of `config.data`.
        loaded: The result of `load_dataset(config.data)`, so that several runs load it only once.
        made_from: The run that `model` was pruned from.
        objective: Your own objective, in place of that of the data's task.
        metrics: Metrics to compute on validation and test data after every epoch; `config.metric` may name one of them.
        root: Folder of the known datasets.
        progress: True shows a progress bar in a terminal and a text that updates itself in a notebook, and nothing
            elsewhere; False and None show only warnings. Your own display is a `TrainingProgress`.

    Returns:
        The run: `run.model` is the trained network, `run.metrics` what was measured after each epoch.

    Raises:
        UserError: Settings, data or files do not fit together; the message says what to change.
        Interrupted: Someone pressed Ctrl-C; the run is saved.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.training import ModelConfig, TrainConfig, train
        >>> config = TrainConfig(DataConfig("digits"), ModelConfig("highway-mlp", depth=3, width=8), epochs=2)
        >>> run = train(config, "runs/digits")
        >>> [line.epoch for line in run.metrics]
        [1, 2]
        >>> run = train(config, "runs/digits", resume=True)  # has finished: returns at once
    """
    if not isinstance(config, TrainConfig):
        raise UserError(
            f'train takes a TrainConfig, such as TrainConfig(DataConfig("digits"), epochs=20); got {config!r}'
        )
    if resume and path is None:
        raise UserError("resume=True needs the run's folder: train(config, path, resume=True)")
    group = ProcessGroup.join(config.device)
    given = {"model": model, "dataset": dataset, "objective": objective, "metrics": metrics or None}
    user_supplied = [name for name, value in given.items() if value is not None]
    own = OwnMetrics(objective, tuple(metrics))
    given_config = config
    config = replace(config, data=hold_out_validation(config.data)) if dataset is None else config
    with private_settings(config.threads, group.device):
        if resume and path is not None:
            run = Run(Path(path), config)
            found = _look_for(run, user_supplied, group)
            if found is not _Found.NOTHING:
                run = Run(run.path, replace(Run.load(run.path).config, device=config.device, threads=config.threads))
            if found is _Found.ENDED:
                return run
            if found is _Found.UNFINISHED:
                return _resume(run, model, loaded if dataset is None else dataset, group, root, progress, own)
        number, initial = 0, None
        with group.raise_together():
            if dataset is None:
                dataset = load_dataset(config.data, root) if loaded is None else loaded
            config = choose_settings(config, dataset, "dataset" in user_supplied)
            used = objective or make_objective(config, dataset)
            metrics_to_compute(
                config, used, dataset.task, metrics
            )  # an unknown one is noticed before there is a folder
            model = make_model(config, dataset) if model is None else model
            if config.threads is None and ("dataset" in user_supplied or not is_paper_dataset(config.data)):
                config = replace(config, threads=suggest_threads(model, config.batch_size))
            if config.init is not None:
                initial = load_initial_weights(model, config.init, dataset.classes)
            if path is None and group.rank == 0:
                number = reserve_number(config, dataset)
        folder = numbered_folder(config, dataset, group.from_rank0(number)) if path is None else Path(path)
        metadata = {"own": user_supplied, "data": fingerprint(dataset)} | parent_metadata(made_from)
        lower = [each.name for each in metrics if not each.higher_is_better]
        metadata |= {"measure": used.measure, "lower_is_better": lower, "chosen": chosen_settings(given_config, config)}
        start = _Start(metadata, initial)
        with cpu_settings(config.threads):
            return _fit(Run(folder, config), model, dataset, group, choose_progress(progress), own, start)


def resume(
    path: str | Path | Run,
    *,
    epochs: int | None = None,
    model: nn.Module | None = None,
    dataset: Dataset | None = None,
    objective: Objective | None = None,
    metrics: Sequence[Metric] = (),
    root: str | Path | None = None,
    progress: TrainingProgress | bool | None = True,
    device: str | None = None,
    threads: int | None = None,
) -> Run:
    """Continue a run that was interrupted or killed, or train a finished run for more epochs.

    A resumed run ends with the same metrics and weights as one that was never stopped, and a run that is continued to
    40 epochs with those of a single run of 40 epochs. The exceptions are schedules that depend on the number of epochs
    (one-cycle, cosine and the weight of a teacher): they are stretched over the new total, and a note says so. In a run
    that stopped early, `patience` starts anew.

    Without `epochs`, a finished run is returned unchanged. Like `train`, this leaves the settings of the process
    unchanged.

    Args:
        path: The run, or its folder.
        epochs: The new total number of epochs, not less than the run has completed; by default, it is unchanged.
        model: The module that the run was started with, if it was given in Python.
        dataset: The dataset that the run was started with, if it was given in Python.
        objective: The objective that the run was started with, if it was given in Python.
        metrics: The metrics that the run was started with, if they were given in Python.
        root: Folder of the known datasets.
        progress: As in `train`.
        device: The device to continue on; by default, the one that the run was started on.
        threads: CPU threads; by default, as many as the run was started with.

    Returns:
        The run, as it now is.

    Raises:
        UserError: The run cannot be continued; the message says why.
        Interrupted: Someone pressed Ctrl-C; the run is saved.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.training import ModelConfig, TrainConfig, resume, train
        >>> run = train(TrainConfig(DataConfig("digits"), ModelConfig(depth=3, width=8), epochs=1), "runs/digits")
        >>> run = resume("runs/digits", epochs=2)
        >>> run.summary.epochs
        2
    """
    run = Run.load(path.path if isinstance(path, Run) else path)
    before = run.config
    if epochs is not None:
        check_new_total(run, epochs)
        run = Run(run.path, replace(before, epochs=epochs))
    summary = run.summary
    if summary is not None and (epochs is None or epochs == summary.epochs):
        return Run(run.path, before)
    supplied = {"model": model, "dataset": dataset, "objective": objective, "metrics": metrics or None}
    for name, given in supplied.items():
        if given is None and name in run.user_supplied and not (name == "model" and run.is_network):
            what = name if name == "metrics" else f"{'an' if name == 'objective' else 'a'} {name}"
            raise UserError(f"{run.path} was trained with {what} given in Python: call resume(path, {name}=...)")
    group = ProcessGroup.join(device or run.config.device)
    change = None if epochs is None else _NewTotal(before, ended=summary is not None)
    with private_settings(threads or run.config.threads, group.device):
        return _resume(run, model, dataset, group, root, progress, OwnMetrics(objective, tuple(metrics)), change)


class _Found(IntEnum):
    """What a folder holds when a training is started that may have been started before."""

    NOTHING = 0
    UNFINISHED = 1
    ENDED = 2


def _look_for(run: Run, user_supplied: list[str], group: ProcessGroup) -> _Found:
    """Look for a run in its folder. Only the first process does, so that all of them do the same."""
    found = _Found.NOTHING
    with group.raise_together():
        if group.rank == 0 and (existing := run_to_continue(run.config, run.path, user_supplied)) is not None:
            found = _Found.UNFINISHED if existing.summary is None else _Found.ENDED
    return _Found(group.from_rank0(found))


def _resume(
    run: Run,
    model: nn.Module | None,
    dataset: Dataset | None,
    group: ProcessGroup,
    root: str | Path | None,
    progress: TrainingProgress | bool | None,
    own: OwnMetrics,
    change: "_NewTotal | None" = None,
) -> Run:
    """Continue a run that has not ended, or whose number of epochs changes."""
    with group.raise_together():
        dataset = load_dataset(run.config.data, root) if dataset is None else dataset
        if changed := data_changes(run, dataset):
            raise UserError(f"{run.path}: the data has changed ({changed}); restore the old data, or start a new run")
        model = _remake_model(run, dataset) if model is None else model
        if run.config.init is not None and not has_checkpoint(run.path / "checkpoint"):
            _load_initial_weights_again(run, model, dataset)
    return _fit(run, model, dataset, group, choose_progress(progress), own, change=change)


def make_model(config: TrainConfig, dataset: Dataset) -> Network:
    """Create the network of a configuration for the data's samples and classes, initialised from the seed."""
    shape = tuple(dataset.train.x.shape[1:])
    overrides: dict[str, Any] = {"classes": dataset.task.outputs, "input_shape": shape} | config.model.overrides()
    name = config.model.name or "highway-mlp"
    try:
        return seeded(config.seed, lambda: create_model(name, **overrides))
    except RuntimeError as error:
        if "memory" not in str(error):
            raise
        raise UserError(f"not enough memory for this {name}: {str(error).splitlines()[0]}") from error


@contextmanager
def private_settings(threads: int | None, device: torch.device) -> Iterator[None]:
    """Settings of the process that hold inside this block only."""
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        # Inside torch.no_grad() or torch.inference_mode(), too, gradients are needed.
        with cpu_settings(threads), private_random_state(device), torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        torch.set_default_dtype(dtype)


def _remake_model(run: Run, dataset: Dataset) -> Network:
    """The network of a run that is resumed; the weights of a user-supplied one are only in the checkpoint."""
    if "model" not in run.user_supplied:
        return make_model(run.config, dataset)
    if not has_checkpoint(run.path / "checkpoint"):
        raise UserError(f"{run.path} was stopped before the model was saved; start it again")
    return build(read_architecture(run.path))


def _load_initial_weights_again(run: Run, model: nn.Module, dataset: Dataset) -> None:
    """Load the weights that a run starts from; from its first checkpoint on, this is not needed any more."""
    assert run.config.init is not None
    recorded = read_json(run.path / "environment.json").get("init")
    initial = load_initial_weights(model, run.config.init, dataset.classes)
    if isinstance(recorded, dict) and recorded.get("sha256") != initial.digest:
        raise UserError(f"init: the weights of {initial.source} have changed since {run.path} was started")


@dataclass(frozen=True)
class _Start:
    """What is written into the folder of a new run."""

    metadata: dict[str, Any]
    initial: InitialWeights | None


@dataclass(frozen=True)
class _NewTotal:
    """A change of the number of epochs: the configuration before, and whether the run had ended with it."""

    before: TrainConfig
    ended: bool


def _fit(
    run: Run,
    model: nn.Module,
    dataset: Dataset,
    group: ProcessGroup,
    progress: TrainingProgress,
    own: OwnMetrics,
    start: _Start | None = None,
    change: _NewTotal | None = None,
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
                progress.summary(summary_lines(run.config, model, dataset, len(trainer.batches), is_own))
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


def _change_total(trainer: Trainer, change: _NewTotal) -> None:
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
    if position.epoch == 0 and run.metrics:
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
