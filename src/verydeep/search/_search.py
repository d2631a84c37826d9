"""A search on this machine: check the configuration, then train all trials with workers side by side."""

import os
import sys
from pathlib import Path
from typing import Literal

from verydeep.data import Dataset
from verydeep.errors import UserError
from verydeep.search._budget import Budget
from verydeep.search._config import SearchConfig
from verydeep.search._progress import SearchProgress, choose_search_progress
from verydeep.search._sampling import draw
from verydeep.search._space import check_limits, with_settings
from verydeep.search.storage._postgres import storage_errors
from verydeep.search.study._study import Study
from verydeep.search.worker._pool import WorkerPool, Workers
from verydeep.search.worker._trial import DatasetCache, ImpossibleError, trial_config
from verydeep.training import TrainConfig, make_model

StopReason = Literal["complete", "interrupted", "the budget is used up"]


def check_search(config: SearchConfig, root: Path | None = None) -> SearchConfig:
    """Check that data and networks exist and fit together, before any process is started; fill in the metric.

    The default metric depends on whether there is validation data, which may come with the data itself.

    Args:
        config: The search.
        root: Folder of the known datasets.

    Returns:
        The search with its metric.

    Raises:
        UserError: Something does not fit together; the message says what.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.search import Choices, SearchConfig, check_search
        >>> from verydeep.training import TrainConfig
        >>> space = {"model.depth": Choices((3, 5))}
        >>> config = SearchConfig(TrainConfig(DataConfig("digits", validation=0.2)), space)
        >>> check_search(config).metric
        'valid_accuracy'
    """
    first, dataset = _first_possible(config, DatasetCache(root))
    config = config.with_metric(dataset.valid is not None)
    if config.metric.startswith("valid_") and dataset.valid is None:
        raise UserError(f"search.metric: {config.metric} needs validation data: set data.validation, such as 0.1")
    for name, domain in config.space.items():
        if name.startswith("model."):
            check_limits(name, domain, "search.space", lambda s: make_model(with_settings(config.train, s), dataset))
    make_model(first, dataset)
    return config


def _first_possible(config: SearchConfig, data: DatasetCache) -> tuple[TrainConfig, Dataset]:
    """The first trial whose settings are compatible, and its data; others that are not will fail as trials."""
    problem: ImpossibleError | None = None
    for number in range(config.options.trials):
        try:
            return trial_config(config, draw(config.space, config.options.seed, number), data)
        except ImpossibleError as error:
            problem = problem or error
    assert problem is not None
    raise problem


def search(
    study: Study,
    folder: str | Path,
    workers: Workers | None = None,
    budget: Budget | None = None,
    progress: SearchProgress | bool | None = True,
) -> StopReason:
    """Train a study's trials in parallel, until all are done, the budget is used up, or someone presses Ctrl-C.

    Each worker is a process with one thread. A search that was stopped continues with the same call.

    Args:
        study: The study.
        folder: Its folder.
        workers: The number of workers, and how they are started; by default, one per core.
        budget: When to stop; by default, when all trials are done.
        progress: True shows a line that updates itself in a terminal or a notebook, and nothing elsewhere; False and
            None show nothing. Your own display is a `SearchProgress`.

    Returns:
        Why the search stopped: `"complete"`, `"interrupted"` or `"the budget is used up"`.

    Example:
        >>> from verydeep.search import Budget, read_search, search, start_study
        >>> study = start_study("runs/digits", read_search("search-digits"))
        >>> search(study, "runs/digits", budget=Budget.read("2 epochs"))
        'the budget is used up'
    """
    folder, workers, budget = Path(folder), workers or Workers(), budget or Budget()
    progress = choose_search_progress(progress)
    with storage_errors():
        left = study.unfinished()
        if not left:
            return "complete"
        jobs = min(left, workers.jobs or free_cores(study.config.train.device, study.config.train.threads))
        progress.start(study, jobs)
        try:
            interrupted = WorkerPool(folder, jobs, workers, budget).run_until_done(study, progress.update)
        finally:
            progress.close()
        if not study.unfinished():
            return "complete"
        return "interrupted" if interrupted else "the budget is used up"


def free_cores(device: str, threads: int | None) -> int:
    """How many workers fit on this machine."""
    if device != "cpu":
        import torch

        if device != "auto" or torch.cuda.is_available():
            return 1
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, cores // (threads or 1))
