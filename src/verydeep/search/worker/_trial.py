"""One trial: an ordinary run in its own folder, which continues where an earlier attempt stopped."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from verydeep.cpu import cpu_settings
from verydeep.data import Batches, DataConfig, Dataset, load_dataset
from verydeep.errors import UserError
from verydeep.lock import is_held
from verydeep.search._config import SearchConfig
from verydeep.search._space import Settings, with_settings
from verydeep.training import EpochMetrics, Position, Run, TrainConfig, TrainingProgress, make_model, resume, train

OnEpoch = Callable[[EpochMetrics], None]
_POLL_EVERY = 0.2  # seconds between checks of a run that another process holds


class DatasetCache:
    """Caches the data of a worker's trials; reloads it only when a trial needs different data."""

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
    """A trial was stopped on purpose after an epoch; its run is saved."""


class ImpossibleError(UserError):
    """The settings cannot be trained by any worker, which is the trial's result."""


def trial_config(search: SearchConfig, settings: Settings, data: DatasetCache) -> tuple[TrainConfig, Dataset]:
    """The configuration and data of a trial; problems of data that is not searched are not the settings' fault."""
    with _impossible_settings():
        config = with_settings(search.train, settings)
        if any(name.startswith("data.") for name in settings):
            data(config.data)
    return config, data(config.data)


def check_trial(config: TrainConfig, dataset: Dataset) -> None:
    """Check that the network can be built and the images can be augmented as configured."""
    with _impossible_settings():
        make_model(config, dataset)
        Batches(dataset.train, config.batch_size, seed=config.seed, augment=config.data.augment)


@contextmanager
def _impossible_settings() -> Iterator[None]:
    try:
        yield
    except UserError as error:
        if isinstance(error.__cause__, OSError):  # a full disk or the like
            raise
        raise ImpossibleError(str(error)) from error


def train_trial(
    config: TrainConfig, path: Path, data: DatasetCache, watch: OnEpoch, wanted: Callable[[], None] = lambda: None
) -> Run:
    """Start or continue a trial's run.

    Args:
        config: What to train; an existing run must have the same, except for device and threads.
        path: The run's folder.
        data: Loads its data.
        watch: Called with the metrics of every epoch, starting with those of earlier attempts; it may raise `Paused`.
        wanted: Called before training starts, and while another process holds the run; it may raise `Paused`.
    """
    wanted()
    while is_held(path / "lock"):  # by a process that counts as dead but is alive, until the end of its epoch
        time.sleep(_POLL_EVERY)
        wanted()
    progress = _ReportEpochs(watch)
    if not (path / "config.json").exists():
        return train(config, path, loaded=data(config.data), progress=progress)
    run = Run.load(path)
    if _comparable(run.config) != _comparable(config):
        raise UserError(f"{path} was started with other settings; rename or delete it, or choose another folder")
    if run.summary is not None:
        for metrics in run.metrics:
            with suppress(Paused):  # there is nothing left to pause
                watch(metrics)
        return run
    return resume(path, dataset=data(config.data), progress=progress, device=config.device, threads=config.threads)


def _comparable(config: TrainConfig) -> TrainConfig:
    """What a result depends on: not the device, nor how the paths of other runs are written."""
    teacher, init = (path and str(Path(path).resolve()) for path in (config.distill.teacher, config.init))
    return replace(config, device="auto", threads=None, init=init, distill=replace(config.distill, teacher=teacher))


class _ReportEpochs(TrainingProgress):
    """Passes the metrics of every epoch on; warnings go to the run's events.log."""

    def __init__(self, watch: OnEpoch) -> None:
        self.watch = watch

    def start(self, run: Run, position: Position, batches: int) -> None:
        self.run, self.position = run, position
        for metrics in run.metrics:
            self.epoch(metrics)

    def epoch(self, metrics: EpochMetrics) -> None:
        try:
            self.watch(metrics)
        except Paused:
            # A run that has diverged or reached its last epoch ends by itself and records how.
            if not self.position.diverged and metrics.epoch < self.run.config.epochs:
                raise
