"""Starting and resuming runs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from typing import Any

import torch
from torch import nn

from verydeep import kernels
from verydeep.cpu import cpu_settings
from verydeep.data import Dataset, load_dataset
from verydeep.errors import UserError
from verydeep.files import read_json
from verydeep.memory import require_memory
from verydeep.models import Network, build, create_model, read_architecture
from verydeep.objectives import Metric, Objective
from verydeep.training._config import TrainConfig
from verydeep.training._continue import chosen_settings, run_to_continue
from verydeep.training._defaults import choose_settings, hold_out_validation, is_paper_dataset, suggest_threads
from verydeep.training._extend import check_new_total
from verydeep.training._fit import NewTotal, Start, fit_run
from verydeep.training._initial_weights import load_initial_weights
from verydeep.training._objective import OwnMetrics, make_objective, metrics_to_compute
from verydeep.training._threads import ChosenThreads, choose_threads, stored_threads
from verydeep.training.progress._progress import TrainingProgress, choose_progress
from verydeep.training.run._checkpoint import has_checkpoint
from verydeep.training.run._derived_run import parent_metadata
from verydeep.training.run._run import Run, numbered_folder, reserve_number
from verydeep.training.run._run_data import data_changes, fingerprint
from verydeep.training.step._process_group import ProcessGroup
from verydeep.training.step._random import private_random_state, seeded


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
                run = Run.load(run.path)
                threads = config.threads or stored_threads(run)
                run = Run(run.path, replace(run.config, device=config.device, threads=threads))
            if found is _Found.ENDED:
                return run
            if found is _Found.UNFINISHED:
                with cpu_settings(run.config.threads):
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
            if model is None:
                model = make_model(config, dataset)
                require_memory(sum(each.nbytes for each in model.parameters()), "the gradients of this network")
            chosen = _choose_threads(config, model, group, "dataset" in user_supplied)
            config = replace(config, threads=config.threads if chosen is None else chosen.number)
            if config.init is not None:
                initial = load_initial_weights(model, config.init, dataset.classes)
            if path is None and group.rank == 0:
                number = reserve_number(config, dataset)
        folder = numbered_folder(config, dataset, group.from_rank0(number)) if path is None else Path(path)
        metadata = {"own": user_supplied, "data": fingerprint(dataset, config.data.verify)} | parent_metadata(made_from)
        lower = [each.name for each in metrics if not each.higher_is_better]
        metadata |= {"measure": used.measure, "lower_is_better": lower, "chosen": chosen_settings(given_config, config)}
        start = Start(metadata, initial, chosen)
        with cpu_settings(config.threads):
            return fit_run(Run(folder, config), model, dataset, group, choose_progress(progress), own, start)


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
        threads: CPU threads; by default, as many as the run was started with. With another number, the last digits of
            the result differ.

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
    change = None if epochs is None else NewTotal(before, ended=summary is not None)
    with private_settings(threads or stored_threads(run), group.device):
        return _resume(run, model, dataset, group, root, progress, OwnMetrics(objective, tuple(metrics)), change)


def _choose_threads(config: TrainConfig, model: nn.Module, group: ProcessGroup, is_own: bool) -> ChosenThreads | None:
    """The number of threads if it is not given; None to do as torch does, on GPUs and with several processes."""
    if config.threads is not None:
        return None
    if (is_own or not is_paper_dataset(config.data)) and suggest_threads(model, config.batch_size) == 1:
        return ChosenThreads(1, "enough for a network of this size")
    return choose_threads() if group.size == 1 and group.device.type == "cpu" else None


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
    change: NewTotal | None = None,
) -> Run:
    """Continue a run that has not ended, or whose number of epochs changes."""
    with group.raise_together():
        dataset = load_dataset(run.config.data, root) if dataset is None else dataset
        if changed := data_changes(run, dataset):
            raise UserError(f"{run.path}: the data has changed ({changed}); restore the old data, or start a new run")
        model = _remake_model(run) if model is None else model
        if run.config.init is not None and not has_checkpoint(run.path / "checkpoint"):
            _load_initial_weights_again(run, model, dataset)
    return fit_run(run, model, dataset, group, choose_progress(progress), own, change=change)


def make_model(config: TrainConfig, dataset: Dataset) -> Network:
    """Create the network of a configuration for the data's samples and classes, initialised from the seed."""
    shape = tuple(dataset.train.x.shape[1:])
    overrides: dict[str, Any] = {"classes": dataset.task.outputs, "input_shape": shape} | config.model.overrides()
    name = config.model.name or "highway-mlp"
    return seeded(config.seed, lambda: create_model(name, **overrides))


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
        kernels.restore_waits()


def _remake_model(run: Run) -> Network:
    """The network of a run that is resumed; the weights of a user-supplied one are only in the checkpoint."""
    if "model" in run.user_supplied and not has_checkpoint(run.path / "checkpoint"):
        raise UserError(f"{run.path} was stopped before the model was saved; start it again")
    return seeded(run.config.seed, lambda: build(read_architecture(run.path)))


def _load_initial_weights_again(run: Run, model: nn.Module, dataset: Dataset) -> None:
    """Load the weights that a run starts from; from its first checkpoint on, this is not needed any more."""
    assert run.config.init is not None
    recorded = read_json(run.path / "environment.json").get("init")
    initial = load_initial_weights(model, run.config.init, dataset.classes)
    if isinstance(recorded, dict) and recorded.get("sha256") != initial.digest:
        raise UserError(f"init: the weights of {initial.source} have changed since {run.path} was started")
