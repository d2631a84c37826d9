"""One trial: an ordinary run in a folder of its own, which goes on where it was."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from verydeep.data import DataConfig, Dataset, load_dataset
from verydeep.training import Report, Run, TrainConfig, resume, train

Watch = Callable[[dict[str, Any]], None]


class Data:
    """The data of a worker's trials, loaded once and again only when a trial needs other data."""

    def __init__(self, root: str | Path | None) -> None:
        self.root = root
        self.config: DataConfig | None = None

    def __call__(self, config: DataConfig) -> Dataset:
        """The data of a configuration."""
        if config != self.config:
            self.dataset, self.config = load_dataset(config, self.root), config
        return self.dataset


class Paused(Exception):  # noqa: N818 - not an error
    """A trial was stopped after an epoch, on purpose; its run is saved."""


def train_trial(config: TrainConfig, path: Path, data: Data, watch: Watch) -> Run:
    """Start or continue a trial's run.

    Args:
        config: What to train; a run that is there already has the same.
        path: The run's folder.
        data: Where its data comes from.
        watch: Gets the metrics of every epoch, those of earlier attempts first; it may raise `Paused`.
    """
    report = _Epochs(watch)
    if not (path / "config.json").exists():
        return train(config, path, loaded=data(config.data), report=report)
    run = Run.load(path)
    for metrics in run.metrics if run.summary is not None else ():
        watch(metrics)
    return resume(path, dataset=data(config.data), report=report)


class _Epochs(Report):
    """Passes every epoch on; what went wrong and was mended goes to the run's events.log."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def start(self, run: Run, position: Any, batches: int) -> None:  # noqa: ANN401
        self.run = run
        for metrics in run.metrics:
            self.watch(metrics)

    def epoch(self, metrics: dict[str, Any]) -> None:
        self.watch(metrics)
