"""A search on this machine: workers side by side, watched, started again when they are killed."""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from verydeep.data import Dataset
from verydeep.errors import UserError
from verydeep.search._budget import Budget
from verydeep.search._config import SearchConfig
from verydeep.search._open import HEARTBEAT
from verydeep.search._postgres import storage_errors
from verydeep.search._process import WorkerProcess
from verydeep.search._records import epochs_trained
from verydeep.search._space import check_limits, draw, with_settings
from verydeep.search._study import Study
from verydeep.search._trial import Data, ImpossibleError, possible
from verydeep.training import TrainConfig, interruptible, make_model

_LOOK_EVERY = 0.5  # seconds
Ending = Literal["complete", "interrupted", "the budget is used"]


class SearchReport:
    """What people see; silent unless it is another."""

    def start(self, study: Study, jobs: int) -> None:
        """The search begins or goes on."""

    def look(self) -> None:
        """Called twice a second."""

    def close(self) -> None:
        """The search has ended, however it did."""


@dataclass(frozen=True)
class Workers:
    """How workers are to be started.

    Attributes:
        jobs: How many at once; as many as there are cores unless given, on a GPU one.
        storage: A PostgreSQL server's address.
        heartbeat: Seconds between signs of life to it.
        root: Where known datasets are kept.
    """

    jobs: int | None = None
    storage: str | None = None
    heartbeat: int = HEARTBEAT
    root: Path | None = None


def check_search(config: SearchConfig, root: Path | None = None) -> SearchConfig:
    """Say what does not exist or fit together once, before any process is started; return the search with its metric.

    The metric depends on whether there is validation data, which may come with the data itself.
    """
    first, dataset = _first_possible(config, Data(root))
    config = config.judged(dataset.valid is not None)
    if config.metric.startswith("valid_") and dataset.valid is None:
        raise UserError(f"search.metric: {config.metric} needs validation data: set data.validation, such as 0.1")
    for name, way in config.space.items():
        if name.startswith("model."):
            check_limits(name, way, "search.space", lambda s: make_model(with_settings(config.train, s), dataset))
    make_model(first, dataset)
    return config


def _first_possible(config: SearchConfig, data: Data) -> tuple[TrainConfig, Dataset]:
    """The first trial whose settings go together, and its data; that others' do not will be their result."""
    problem: ImpossibleError | None = None
    for number in range(config.options.trials):
        try:
            return possible(config, draw(config.space, config.options.seed, number), data)
        except ImpossibleError as error:
            problem = problem or error
    assert problem is not None
    raise problem


def search(
    study: Study, folder: Path, workers: Workers, budget: Budget | None = None, report: SearchReport | None = None
) -> Ending:
    """Train a study's trials in processes of one thread each, until all are done, time is over or someone interrupts.

    Args:
        study: Whose trials.
        folder: Its folder.
        workers: How they are started.
        budget: When to stop.
        report: What people see.
    """
    budget, report = budget or Budget(), report or SearchReport()
    with storage_errors():
        left = study.unfinished()
        if not left:
            return "complete"
        jobs = min(left, workers.jobs or free_cores(study.config.train.device, study.config.train.threads))
        report.start(study, jobs)
        try:
            interrupted = _work_off(study, _Crew(folder, jobs, workers, budget), report)
        finally:
            report.close()
        if not study.unfinished():
            return "complete"
        return "interrupted" if interrupted else "the budget is used"


class _Crew:
    """The workers of this command: as many as there should be, one that was killed or told to stop replaced."""

    def __init__(self, folder: Path, jobs: int, workers: Workers, budget: Budget) -> None:
        self.folder, self.jobs, self.workers, self.budget = folder, jobs, workers, budget
        self.began, self.started, self.ended = time.monotonic(), 0, 0
        self.running: list[WorkerProcess] = []
        self.problems: list[str] = []

    @property
    def missing(self) -> bool:
        return len(self.running) + self.ended < self.jobs

    def start(self) -> None:
        seconds = self.budget.seconds
        left = None if seconds is None else max(1.0, seconds - (time.monotonic() - self.began))
        options = _options(self.workers, left, self.budget.epochs)
        self.running.append(WorkerProcess(self.folder, self.started, options))
        self.started += 1

    def sort_out(self, study: Study) -> None:
        """Those that have ended: done, stopped or killed by someone else, or with a problem."""
        for process in [process for process in self.running if process.code is not None]:
            self.running.remove(process)
            process.stop()
            code = process.code or 0
            self.ended += code > 0 or (code == 0 and self._is_over(study))
            if code > 0:
                self.problems.append(process.problem)

    def _is_over(self, study: Study) -> bool:
        """Whether there is nothing left to do, or nothing left to do it with."""
        seconds, epochs = self.budget.seconds, self.budget.epochs
        if seconds is not None and time.monotonic() - self.began >= seconds:
            return True
        if not study.store.patiently(study.unfinished):
            return True
        return epochs is not None and study.store.patiently(lambda: epochs_trained(study)) >= epochs


def _work_off(study: Study, crew: _Crew, report: SearchReport) -> bool:
    """Until every worker has ended; return whether someone interrupted."""
    with interruptible() as interrupt:
        try:
            while crew.running or (crew.missing and not interrupt.requested):
                while crew.missing and not interrupt.requested:
                    crew.start()
                crew.sort_out(study)
                if interrupt.requested:
                    for process in crew.running:
                        process.stop()
                study.store.patiently(report.look)
                time.sleep(_LOOK_EVERY)
        finally:  # nothing to do, unless someone interrupts a second time
            for process in crew.running:
                process.kill()
    if crew.problems and study.unfinished():
        raise UserError(f"a worker failed: {crew.problems[0]} (logs are in {crew.folder / 'workers'})")
    return interrupt.requested


def _options(workers: Workers, seconds: float | None, epochs: int | None) -> dict[str, object]:
    root = None if workers.root is None else str(workers.root)
    return {
        "storage": workers.storage,
        "heartbeat": workers.heartbeat,
        "root": root,
        "seconds": seconds,
        "epochs": epochs,
    }


def free_cores(device: str, threads: int | None) -> int:
    """How many workers this machine has room for."""
    if device != "cpu":
        import torch

        if device != "auto" or torch.cuda.is_available():
            return 1
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, cores // (threads or 1))
