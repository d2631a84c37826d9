"""A search on this machine: workers side by side, watched, started again when they are killed."""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from verydeep.data import load_dataset
from verydeep.errors import UserError
from verydeep.search._budget import Budget
from verydeep.search._config import SearchConfig
from verydeep.search._open import HEARTBEAT
from verydeep.search._postgres import storage_errors
from verydeep.search._process import WorkerProcess
from verydeep.search._space import draw, with_settings
from verydeep.search._study import Study
from verydeep.training import interruptible, make_model

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


def check_search(config: SearchConfig, root: Path | None) -> None:
    """Say what does not exist or fit together once, before any process is started."""
    first = with_settings(config.train, draw(config.space, config.options.seed, 0))
    dataset = load_dataset(first.data, root)
    if config.metric.startswith("valid_") and dataset.valid is None:
        raise UserError(f"search.metric: {config.metric} needs validation data: set data.validation, such as 0.1")
    make_model(first, dataset)


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
        report.start(study, workers.jobs or free_cores(study.config.train.device, study.config.train.threads))
        try:
            interrupted = _work_off(study, folder, workers, budget, report)
        finally:
            report.close()
        if study.is_complete():
            return "complete"
        return "interrupted" if interrupted else "the budget is used"


def _work_off(study: Study, folder: Path, workers: Workers, budget: Budget, report: SearchReport) -> bool:
    """Keep as many workers as there should be; return whether someone interrupted."""
    jobs = workers.jobs or free_cores(study.config.train.device, study.config.train.threads)
    began, started, ended, problems = time.monotonic(), 0, 0, []
    running: list[WorkerProcess] = []
    with interruptible() as interrupt:
        try:
            while running or (not interrupt.requested and ended < jobs):
                while len(running) + ended < jobs and not interrupt.requested:
                    left = None if budget.seconds is None else max(1.0, budget.seconds - (time.monotonic() - began))
                    running.append(WorkerProcess(folder, started, _options(workers, left, budget.epochs)))
                    started += 1
                for process in [process for process in running if process.code is not None]:
                    running.remove(process)
                    process.stop()
                    ended += (process.code or 0) >= 0  # a killed one is replaced
                    if (process.code or 0) > 0:
                        problems.append(process.problem)
                if interrupt.requested:
                    for process in running:
                        process.stop()
                study.store.patiently(report.look)
                time.sleep(_LOOK_EVERY)
        finally:  # nothing to do, unless someone interrupts a second time
            for process in running:
                process.kill()
    if problems and not study.is_complete():
        raise UserError(f"a worker failed: {problems[0]} (logs are in {folder / 'workers'})")
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
