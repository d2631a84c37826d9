"""One trial: an ordinary run in a folder of its own, which goes on where it was."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from verydeep.cpu import cpu_settings
from verydeep.data import Batches, DataConfig, Dataset, load_dataset
from verydeep.errors import UserError
from verydeep.lock import is_held
from verydeep.search._config import SearchConfig
from verydeep.search._space import Settings, with_settings
from verydeep.training import Position, Run, TrainConfig, TrainingProgress, make_model, resume, train

Watch = Callable[[dict[str, Any]], None]
_PAUSE = 0.2  # seconds between looks at a run that another process holds


class Data:
    """The data of a worker's trials, loaded once and again only when a trial needs other data."""

    def __init__(self, root: str | Path | None) -> None:
        self.root = root
        self.config: DataConfig | None = None

    def __call__(self, config: DataConfig) -> Dataset:
        """The data of a configuration."""
        if config != self.config:
            with cpu_settings():  # as in a training that loads its own data
                self.dataset, self.config = load_dataset(config, self.root), config
        return self.dataset


class Paused(Exception):  # noqa: N818 - not an error
    """A trial was stopped after an epoch, on purpose; its run is saved."""


class ImpossibleError(UserError):
    """The settings cannot be trained, whoever tries: a trial's result."""


def possible(search: SearchConfig, settings: Settings, data: Data) -> tuple[TrainConfig, Dataset]:
    """What a trial trains on what; what is wrong with data that is not searched is no fault of its settings."""
    with _impossible():
        config = with_settings(search.train, settings)
        if any(name.startswith("data.") for name in settings):
            data(config.data)
    return config, data(config.data)


def check_trial(config: TrainConfig, dataset: Dataset) -> None:
    """Refuse a network that cannot be, and images that cannot be varied so."""
    with _impossible():
        make_model(config, dataset)
        Batches(dataset.train, config.batch_size, seed=config.seed, augment=config.data.augment)


@contextmanager
def _impossible() -> Iterator[None]:
    try:
        yield
    except UserError as error:
        if isinstance(error.__cause__, OSError):  # a full disk or the like
            raise
        raise ImpossibleError(str(error)) from error


def train_trial(
    config: TrainConfig, path: Path, data: Data, watch: Watch, wanted: Callable[[], None] = lambda: None
) -> Run:
    """Start or continue a trial's run.

    Args:
        config: What to train; a run that is there already must have the same, but for the machine's part.
        path: The run's folder.
        data: Where its data comes from.
        watch: Gets the metrics of every epoch, those of earlier attempts first; it may raise `Paused`.
        wanted: Is called before anything is trained, also while another process holds the run; it may raise `Paused`.
    """
    wanted()
    while is_held(path / "lock"):  # by a process that was given up but lives, until the end of its epoch
        time.sleep(_PAUSE)
        wanted()
    progress = _Epochs(watch)
    if not (path / "config.json").exists():
        return train(config, path, loaded=data(config.data), progress=progress)
    run = Run.load(path)
    if _settings(run.config) != _settings(config):
        raise UserError(f"{path} was started with other settings; move it away, or choose another folder")
    if run.summary is not None:
        for metrics in run.metrics:
            with suppress(Paused):  # there is nothing left to pause
                watch(metrics)
        return run
    return resume(path, dataset=data(config.data), progress=progress, device=config.device, threads=config.threads)


def _settings(config: TrainConfig) -> TrainConfig:
    """What a result depends on: neither the device nor how the teacher's folder is written."""
    teacher = config.distill.teacher
    distill = replace(config.distill, teacher=teacher and str(Path(teacher).resolve()))
    return replace(config, device="auto", threads=None, distill=distill)


class _Epochs(TrainingProgress):
    """Passes every epoch on; what went wrong and was mended goes to the run's events.log."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def start(self, run: Run, position: Position, batches: int) -> None:
        self.run, self.position = run, position
        for metrics in run.metrics:
            self.epoch(metrics)

    def epoch(self, metrics: dict[str, Any]) -> None:
        try:
            self.watch(metrics)
        except Paused:
            # One that has diverged, or was trained to its end, ends by itself and says how.
            if not self.position.diverged and metrics["epoch"] < self.run.config.epochs:
                raise
