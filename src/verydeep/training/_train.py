"""Starting and continuing runs."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from verydeep.data import Dataset, load_dataset
from verydeep.errors import UserError
from verydeep.files import read_json
from verydeep.lock import exclusive_lock
from verydeep.models import Network, build, create_model, read_architecture
from verydeep.training._checkpoint import remove_old, set_aside
from verydeep.training._config import TrainConfig
from verydeep.training._data import remember
from verydeep.training._derive import origin
from verydeep.training._environment import changed_environment
from verydeep.training._fingerprint import differences, fingerprint
from verydeep.training._folders import free_number, numbered_folder
from verydeep.training._interrupt import interruptible
from verydeep.training._loop import Status, Trainer
from verydeep.training._report import Report
from verydeep.training._run import Run, best_line, require_free_folder
from verydeep.training._world import ProcessGroup


class Interrupted(Exception):  # noqa: N818 - not an error
    """Someone asked to stop; the run is saved and can be continued."""

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
    report: Report | None = None,
) -> Run:
    """Train a network and return its run.

    Args:
        config: What to train on what, and how.
        path: The run's folder, which must not exist or be empty; `runs/MODEL-DATA-N` unless given.
        model: A module of your own that returns logits, in place of `config.model`.
        dataset: Data of your own, in place of `config.data`.
        loaded: What `load_dataset(config.data)` gave, so that many runs load it once.
        made_from: The run that `model` was pruned from.
        root: Where known datasets are kept.
        report: What people see; nothing unless given.
    """
    world = _world(config)
    own = [name for name, given in (("model", model), ("dataset", dataset)) if given is not None]
    number = 0
    with world.agreed():
        if dataset is None:
            dataset = load_dataset(config.data, root) if loaded is None else loaded
        model = make_model(config, dataset) if model is None else model
        if path is None and world.rank == 0:
            number = free_number(config, dataset)
    run = Run(numbered_folder(config, dataset, world.first(number)) if path is None else Path(path), config)
    facts = {"own": own, "data": fingerprint(dataset)} | origin(made_from)
    return _fit(run, model, dataset, world, report or Report(), facts)


def resume(
    path: str | Path,
    *,
    model: nn.Module | None = None,
    dataset: Dataset | None = None,
    root: str | Path | None = None,
    report: Report | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> Run:
    """Continue a run that was interrupted or killed; one that has ended is returned as it is.

    Args:
        path: The run's folder.
        model: The module of your own that the run was started with, if it was.
        dataset: The data of your own that the run was started with, if it was.
        root: Where known datasets are kept.
        report: What people see; nothing unless given.
        device: Where to go on; where it was started unless given.
        threads: Of the CPU; as many as it was started with unless given.
    """
    run = Run.load(path)
    if run.summary is not None:
        return run
    for name, given in (("model", model), ("dataset", dataset)):
        if given is None and name in run.facts.get("own", ()) and not (name == "model" and run.is_network):
            raise UserError(f"{path} was started with a {name} of your own; in Python: resume(path, {name}=...)")
    world = _world(replace(run.config, device=device or run.config.device, threads=threads or run.config.threads))
    with world.agreed():
        dataset = load_dataset(run.config.data, root) if dataset is None else dataset
        if changed := differences(run.facts.get("data", {}), fingerprint(dataset)):
            raise UserError(f"{path}: the data has changed ({changed}); put it back as it was, or start a new run")
        model = _model_again(run, dataset) if model is None else model
    return _fit(run, model, dataset, world, report or Report())


def make_model(config: TrainConfig, dataset: Dataset) -> Network:
    """The network of a configuration, made for the data's samples and classes, initialised by the seed."""
    torch.manual_seed(config.seed)
    shape = tuple(dataset.train.x.shape[1:])
    overrides = {"classes": len(dataset.classes), "input_shape": shape} | config.model.overrides()
    try:
        return create_model(config.model.name, **overrides)
    except RuntimeError as error:
        if "memory" not in str(error):
            raise
        raise UserError(f"not enough memory for this {config.model.name}: {str(error).splitlines()[0]}") from error


def _model_again(run: Run, dataset: Dataset) -> Network:
    """The network of a run that goes on; one that was given has its weights in the checkpoint alone."""
    if "model" not in run.facts.get("own", ()):
        return make_model(run.config, dataset)
    if not any((run.path / "checkpoint").glob("*.safetensors")):
        raise UserError(f"{run.path} was stopped before it saved the network it was given; start it again")
    return build(read_architecture(run.path))


def _fit(
    run: Run,
    model: nn.Module,
    dataset: Dataset,
    world: ProcessGroup,
    report: Report,
    facts: dict[str, Any] | None = None,
) -> Run:
    """Train to the end; with `facts` the run is new, and its folder is filled once everything fits together."""
    report = report if world.rank == 0 else Report()
    with ExitStack() as held:
        with world.agreed():
            if world.rank == 0:
                if facts is not None:
                    require_free_folder(run.path)
                busy = f"{run.path} is being trained by another process"
                held.enter_context(exclusive_lock(run.path / "lock", busy, wait=False))
            if run.config.checkpoint_activations:
                _recompute(model)
            trainer = Trainer(run, model.to(world.device), dataset, world, report)
            if facts is not None and world.rank == 0:
                remember(run, dataset)
                Run.create(run.path, run.config, model, facts)
        _start_alike(trainer)
        return _fit_alone(trainer, report)


def _fit_alone(trainer: Trainer, report: Report) -> Run:
    """The run's folder is this training's alone."""
    run, world = trainer.run, trainer.world
    try:
        if world.rank == 0:
            _start(run, trainer, report)
        try:
            with interruptible() as interrupt:
                status = trainer.fit(interrupt)
        finally:
            report.close()
        if world.rank == 0:
            run.log(status)
        if status == "interrupted":
            raise Interrupted(run)
        if world.rank == 0:
            run.finish(_summary(trainer, status))
    except UserError as error:
        if isinstance(error.__cause__, OSError):
            raise UserError(f"{error}; nothing older is lost, go on: verydeep train --resume {run.path}") from error
        raise
    world.wait()
    return run


def _start_alike(trainer: Trainer) -> None:
    """Every process from the same position and the same weights."""
    world, position = trainer.world, trainer.position
    alike = world.same(position.epoch) and world.same(position.batch)
    with world.agreed():
        if not alike:
            raise UserError(
                f"the processes read different checkpoints: {trainer.run.path} must be on a disk they share"
            )
    world.same_start(trainer.model)


def _start(run: Run, trainer: Trainer, report: Report) -> None:
    """Bring the folder in line with the checkpoint that training goes on from."""
    run.remove_partial_files()
    if trainer.position.epoch == 0 and run.metrics:
        report.warn(f"{run.path / 'checkpoint'} has no checkpoint: training starts again from the beginning")
    missing = trainer.position.epoch - len(run.metrics)
    if missing > 0:
        report.warn(f"{run.path / 'metrics.jsonl'} has lost {missing} epochs; the weights are not affected")
    run.keep_epochs(trainer.position.epoch)
    changes = changed_environment(read_json(run.path / "environment.json"))
    for name, before, now in changes:
        run.log(f"{name} was {before} and is {now}")
        report.warn(f"{name} was {before} and is {now}: the result may differ in the last digits")
    if changes:
        run.keep_environment()
    for checkpoint, problem in trainer.problems.items():
        set_aside(checkpoint)
        run.log(f"skipped a checkpoint: {problem}")
        report.warn(f"{problem}; going on from the one before, after {trainer.position.epoch} epochs")
    remove_old(run.path / "checkpoint")
    run.log(f"training from epoch {trainer.position.epoch} batch {trainer.position.batch}")


def _recompute(model: nn.Module) -> None:
    if not isinstance(model, Network):
        raise UserError("checkpoint_activations is for our networks; a module of your own must recompute them itself")
    model.checkpoint_activations()


def _summary(trainer: Trainer, status: Status) -> dict[str, Any]:
    metrics = trainer.run.metrics
    return {
        "status": status,
        "epochs": trainer.position.epoch,
        "parameters": sum(p.numel() for p in trainer.model.parameters()),
        "last": metrics[-1] if metrics else {},
        "best": best_line(metrics[:-1] if status == "diverged" else metrics),
    }


def _world(config: TrainConfig) -> ProcessGroup:
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    return ProcessGroup.join(config.device)
