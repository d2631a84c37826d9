"""One training of a study: an ordinary run in its own folder, which continues where an earlier attempt stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verydeep.config import to_dict
from verydeep.cpu import cpu_settings
from verydeep.data import Batches, DataConfig, Dataset, load_dataset
from verydeep.errors import UserError
from verydeep.files import read_json
from verydeep.lock import is_held
from verydeep.studies._group import Group
from verydeep.studies._space import Settings, with_settings
from verydeep.training import EpochMetrics, Position, Run, TrainConfig, TrainingProgress, make_model, resume, train

if TYPE_CHECKING:
    from torch import Tensor

_POLL_EVERY = 0.2  # seconds between checks of a run that another process holds
_STEP_EVERY = 0.1  # seconds between messages about single steps


class DatasetCache:
    """Caches the data of a worker's trainings; reloads it only when a training needs different data."""

    def __init__(self, root: str | Path | None) -> None:
        self.root = root
        self.config: DataConfig | None = None

    def __call__(self, config: DataConfig) -> Dataset:
        """Load the data of a configuration, unless it is loaded already."""
        if config != self.config:
            with cpu_settings():  # as in a training that loads its own data
                self.dataset, self.config = load_dataset(config, self.root), config
        return self.dataset


class Paused(Exception):  # noqa: N818 - not an error
    """A training was stopped on purpose after an epoch; its run is saved."""


class ImpossibleError(UserError):
    """The settings cannot be trained by any worker, which is the training's result."""


class TrainingEvents:
    """What a worker does while it trains."""

    def start(self, environment: dict[str, Any], position: float) -> None:
        """Called when training begins or continues, with the machine and the number of epochs already done."""

    def epoch(self, metrics: EpochMetrics) -> None:
        """Called with the metrics of every epoch, starting with those of earlier attempts; may raise `Paused`."""

    def step(self, position: float, loss: float, accuracy: float) -> None:
        """Called a few times per second, with the epochs done and the results of the last batch."""

    def wait(self) -> None:
        """Called before training starts, and while another process holds the run; may raise `Paused`."""


def training_config(group: Group, number: int, settings: Settings, folder: Path) -> TrainConfig:
    """The configuration of a training, with one thread by default, so that its bits do not depend on the machine."""
    config = with_settings(group.config, settings) if settings else group.config
    if group.seeds is not None:
        fold = 0 if config.data.folds is None else number % config.data.folds
        config = replace(config, seed=number, data=replace(config.data, fold=fold))
    if group.after is not None:
        config = replace(config, distill=replace(config.distill, teacher=str(folder / group.after)))
    return replace(config, threads=config.threads or 1)


def checked_config(
    group: Group, number: int, settings: Settings, folder: Path, data: DatasetCache
) -> tuple[TrainConfig, Dataset]:
    """The configuration and data of a training; problems of data that is not searched are not the settings' fault."""
    with _impossible_settings(bool(settings)):
        config = training_config(group, number, settings, folder)
        if any(name.startswith("data.") for name in settings):
            data(config.data)
    return config, data(config.data)


def check_training(config: TrainConfig, dataset: Dataset, searched: bool = True) -> None:
    """Check that the network can be built and the images can be augmented as configured."""
    with _impossible_settings(searched):
        make_model(config, dataset)
        Batches(dataset.train, config.batch_size, seed=config.seed, augment=config.data.augment)


@contextmanager
def _impossible_settings(searched: bool) -> Iterator[None]:
    try:
        yield
    except UserError as error:
        if not searched or isinstance(error.__cause__, OSError):  # a full disk or the like
            raise
        raise ImpossibleError(str(error)) from error


def train_run(
    config: TrainConfig,
    path: Path,
    data: DatasetCache,
    events: TrainingEvents,
    wrap: Callable[[TrainingProgress], TrainingProgress] = lambda progress: progress,
) -> Run:
    """Start or continue a run.

    Args:
        config: What to train; an existing run must have the same, except for device, threads and epochs. One that has
            not ended gets this number of epochs, unless it has more already.
        path: The run's folder.
        data: Loads its data.
        events: Told what happens.
        wrap: Adds to what is done while training, such as TensorBoard.
    """
    events.wait()
    while True:
        while is_held(path / "lock"):  # by a process that counts as dead but is alive, until the end of its epoch
            time.sleep(_POLL_EVERY)
            events.wait()
        try:
            return _start_or_continue(config, path, data, events, wrap(_Reporter(events)))
        except UserError:
            if not is_held(path / "lock"):  # by another worker that needs the same teacher and was a moment faster
                raise


def _start_or_continue(
    config: TrainConfig, path: Path, data: DatasetCache, events: TrainingEvents, progress: TrainingProgress
) -> Run:
    if not (path / "config.json").exists():
        return train(config, path, loaded=data(config.data), progress=progress)
    run = Run.load(path)
    if _comparable(run.config) != _comparable(config):
        raise UserError(f"{path} was started with other settings; rename or delete it, or choose another folder")
    more = config.epochs > run.config.epochs and not (run.summary is not None and run.summary.status == "diverged")
    if run.summary is not None and not more:
        events.start(read_json(path / "environment.json"), len(run.metrics))
        for metrics in run.metrics:
            with suppress(Paused):  # there is nothing left to pause
                events.epoch(metrics)
        return run
    epochs = None if config.epochs == run.config.epochs or len(run.metrics) > config.epochs else config.epochs
    dataset = data(config.data)
    return resume(path, epochs=epochs, dataset=dataset, progress=progress, device=config.device, threads=config.threads)


def _comparable(config: TrainConfig) -> dict[str, Any]:
    """What a result depends on: not the device, nor how many epochs there are, nor how paths are written."""
    init = config.init and str(Path(config.init).resolve())
    # The teacher is a training of the same study, which may have been moved, or is on another machine.
    teacher = config.distill.teacher and Path(config.distill.teacher).name
    distill = replace(config.distill, teacher=teacher)
    values = to_dict(replace(config, device="auto", threads=None, init=init, distill=distill))
    del values["epochs"]
    return values


class _Reporter(TrainingProgress):
    """Passes on what happens; warnings go to the run's events.log."""

    def __init__(self, events: TrainingEvents) -> None:
        self.events, self.sent = events, 0.0

    def start(self, run: Run, position: Position, batches: int) -> None:
        self.run, self.position, self.batches = run, position, batches
        self.events.start(read_json(run.path / "environment.json"), position.epoch + position.batch / batches)
        for metrics in run.metrics:
            self.epoch(metrics)

    def step(self, position: Position, result: Tensor, samples: int, lr: float) -> None:
        now = time.monotonic()
        if now - self.sent >= _STEP_EVERY:
            self.sent = now
            loss, accuracy = (result.detach() / samples).tolist()
            self.events.step(position.epoch + position.batch / self.batches, loss, accuracy)

    def epoch(self, metrics: EpochMetrics) -> None:
        try:
            self.events.epoch(metrics)
        except Paused:
            # A run that has diverged or reached its last epoch ends by itself and records how.
            if not self.position.diverged and metrics.epoch < self.run.config.epochs:
                raise
