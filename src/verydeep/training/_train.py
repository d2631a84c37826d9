"""Starting and continuing runs."""

from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import nn

from verydeep.data import Dataset, load_dataset
from verydeep.errors import UserError
from verydeep.lock import alone
from verydeep.models import Network, create_model
from verydeep.training._config import TrainConfig
from verydeep.training._interrupt import interruptible
from verydeep.training._loop import Status, Trainer
from verydeep.training._report import Report
from verydeep.training._run import Run
from verydeep.training._world import World


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
    root: str | Path | None = None,
    report: Report | None = None,
) -> Run:
    """Train a network and return its run.

    Args:
        config: What to train on what, and how.
        path: The run's folder, which must not exist or be empty; `runs/MODEL-DATA-N` unless given.
        model: A module of your own that returns logits, in place of `config.model`.
        dataset: Data of your own, in place of `config.data`.
        root: Where known datasets are kept.
        report: What people see; nothing unless given.
    """
    world = _world(config)
    with world.agreed():
        dataset = load_dataset(config.data, root) if dataset is None else dataset
        model = make_model(config, dataset) if model is None else model
    run = Run(_free(config, dataset, world) if path is None else Path(path), config)
    with world.agreed():
        if world.rank == 0:
            Run.create(run.path, config, model)
    return _fit(run, model, dataset, world, report or Report())


def resume(
    path: str | Path,
    *,
    model: nn.Module | None = None,
    dataset: Dataset | None = None,
    root: str | Path | None = None,
    report: Report | None = None,
) -> Run:
    """Continue a run that was interrupted or killed; one that has ended is returned as it is.

    Args:
        path: The run's folder.
        model: The module of your own that the run was started with, if it was.
        dataset: The data of your own that the run was started with, if it was.
        root: Where known datasets are kept.
        report: What people see; nothing unless given.
    """
    run = Run.load(path)
    if run.summary is not None:
        return run
    if model is None and not run.is_network:
        raise UserError(f"{path} trains a module of your own: continue it in Python, resume(path, model=...)")
    world = _world(run.config)
    with world.agreed():
        dataset = load_dataset(run.config.data, root) if dataset is None else dataset
        model = make_model(run.config, dataset) if model is None else model
    return _fit(run, model, dataset, world, report or Report())


def make_model(config: TrainConfig, dataset: Dataset) -> Network:
    """The network of a configuration, made for the data's samples and classes, initialised by the seed."""
    torch.manual_seed(config.seed)
    shape = tuple(dataset.train.x.shape[1:])
    overrides = {"classes": len(dataset.classes), "input_shape": shape} | config.model.overrides()
    model = create_model(config.model.name, **overrides)
    if config.checkpoint_activations:
        model.checkpoint_activations()
    return model


def _fit(run: Run, model: nn.Module, dataset: Dataset, world: World, report: Report) -> Run:
    busy = f"{run.path} is being trained by another process"
    report = report if world.rank == 0 else Report()
    with ExitStack() as held:
        with world.agreed():
            if world.rank == 0:
                held.enter_context(alone(run.path / "lock", busy, wait=False))
            trainer = Trainer(run, model.to(world.device), dataset, world, report)
        _start_together(trainer)
        if world.rank == 0:
            run.keep_epochs(trainer.position.epoch)
            for problem in trainer.problems:
                run.log(f"skipped a checkpoint: {problem}")
            run.log(f"training from epoch {trainer.position.epoch} batch {trainer.position.batch}")
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
            run.finish(_summary(run, status, model))
        world.wait()
    return run


def _start_together(trainer: Trainer) -> None:
    world, position = trainer.world, trainer.position
    if not (world.same(position.epoch) and world.same(position.batch)):
        raise UserError(f"{trainer.run.path} must be on a disk that all machines share: they read different checkpoints")
    world.same_start(trainer.model)


def _summary(run: Run, status: Status, model: nn.Module) -> dict[str, Any]:
    metrics = run.metrics
    best = max(metrics, key=lambda line: line.get("valid_accuracy") or 0) if "valid_accuracy" in metrics[-1] else None
    parameters = sum(p.numel() for p in model.parameters())
    return {"status": status, "epochs": len(metrics), "parameters": parameters, "last": metrics[-1], "best": best}


def _free(config: TrainConfig, dataset: Dataset, world: World) -> Path:
    name = f"{config.model.name}-{dataset.name}"
    number = next(number for number in count(1) if not (Path("runs") / f"{name}-{number}").exists())
    return Path("runs") / f"{name}-{world.first(number)}"


def _world(config: TrainConfig) -> World:
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    return World.join(config.device)
