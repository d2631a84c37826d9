"""One configuration with several seeds, in parallel, as a study.

seeds.json     the configuration and the seeds
seed-N/        the run of each seed, a run like any other
summary.json   the result: `Best (mean ± std)`
study.json, journal.log, workers/   the study: which seeds are trained, and by whom; see `verydeep.studies._open`
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verydeep.data import load_dataset
from verydeep.errors import UserError
from verydeep.lock import exclusive_lock
from verydeep.studies._group import Group
from verydeep.studies._open import open_study, start_study
from verydeep.studies._run_study import run_study
from verydeep.studies.seeds._seeds import Seeds
from verydeep.studies.storage._postgres import storage_errors
from verydeep.studies.storage._store import HEARTBEAT
from verydeep.training import (
    SEEDS_FILE,
    TrainConfig,
    chosen_settings,
    complete_config,
    hold_out_validation,
    interruptible,
    load_initial_weights,
    make_model,
    numbered_folder,
    reserve_number,
)

if TYPE_CHECKING:
    from optuna.artifacts._protocol import ArtifactStore

    from verydeep.studies._progress import StudyProgress

_MOST_SEEDS = 10_000


class SeedsInterrupted(Exception):  # noqa: N818 - not an error
    """Someone asked to stop, with Ctrl-C or SIGTERM. Every seed is saved, and `resume_seeds` continues them.

    Attributes:
        seeds: The seeds.

    Example:
        >>> from verydeep.studies import SeedsInterrupted, train_seeds
        >>> from verydeep.training import TrainConfig
        >>> def train_or_save(config: TrainConfig) -> None:
        ...     try:
        ...         train_seeds(config, 5)
        ...     except SeedsInterrupted as stopped:
        ...         print(f"saved; resume_seeds({str(stopped.seeds.path)!r}) continues")
    """

    def __init__(self, seeds: Seeds) -> None:
        super().__init__(f"training was interrupted; {seeds.path} is saved and can be resumed")
        self.seeds = seeds


def train_seeds(
    config: TrainConfig,
    count: int,
    path: str | Path | None = None,
    *,
    root: str | Path | None = None,
    jobs: int | None = None,
    progress: StudyProgress | bool | None = True,
    tensorboard: bool = False,
    storage: str | None = None,
    artifacts: str | Path | ArtifactStore | None = None,
    heartbeat: int = HEARTBEAT,
) -> Seeds:
    """Train with the seeds `config.seed` to `config.seed + count - 1`, in parallel, as a study.

    With `config.data.folds`, each seed holds out the fold `seed % folds` for validation: as many seeds as folds are a
    cross-validation, and the summary is about validation data.

    A seed that diverges or fails does not stop the others. By default each worker uses one thread, so the run of a
    seed has the same bits however many seeds there are. Workers on other machines may join: `verydeep worker FOLDER`.

    Args:
        config: The network, the data and the training settings.
        count: The number of seeds.
        path: The folder for their runs, which must be new or empty; by default `runs/MODEL-DATA-N`.
        root: Folder of the known datasets.
        jobs: The number of workers on this machine; by default as many as the cores allow, or one on a GPU. With 0,
            this process only waits for workers elsewhere.
        progress: True shows a table that updates itself in a terminal or a notebook, and nothing elsewhere; False and
            None show nothing. Your own display is a `StudyProgress`.
        tensorboard: Write TensorBoard events for every run.
        storage: A PostgreSQL server's address; by default, a journal file in the folder records the study.
        artifacts: A folder that all machines share, or one of Optuna's artifact stores; the best run is stored there.
        heartbeat: Seconds between the heartbeats that workers send to a server.

    Returns:
        The runs and their summary.

    Raises:
        UserError: Settings, data or files do not fit together, or every seed failed.
        SeedsInterrupted: Someone pressed Ctrl-C; every seed is saved.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.studies import train_seeds
        >>> from verydeep.training import ModelConfig, TrainConfig
        >>> config = TrainConfig(DataConfig("digits"), ModelConfig(depth=3, width=8), epochs=1)
        >>> seeds = train_seeds(config, 2, "runs/digits-seeds")
        >>> print(seeds.describe())
        Best (mean ± std) test accuracy: ... %, sample standard deviation over 2 runs; ...
    """
    if not 1 <= count <= _MOST_SEEDS:
        raise UserError(f"the number of seeds must be from 1 to {_MOST_SEEDS:,}, got {count:,}")
    if "WORLD_SIZE" in os.environ:
        raise UserError("every seed already has its own process; train several seeds without torchrun")
    if jobs is not None and jobs < 0:
        raise UserError(f"jobs must be 0 or more, got {jobs}")
    numbers = tuple(range(config.seed, config.seed + count))
    Group("", config, seeds=numbers)  # checks them before there is a folder
    given, config = config, replace(config, threads=config.threads or 1)
    # Report what is missing or does not fit together once, before any process starts.
    config = replace(config, data=hold_out_validation(config.data))
    dataset = load_dataset(config.data, root)
    config = complete_config(config, dataset)
    model = make_model(config, dataset)
    if config.init is not None:
        load_initial_weights(model, config.init, dataset.classes)
    folder = numbered_folder(config, dataset, reserve_number(config, dataset)) if path is None else Path(path)
    del dataset
    chosen = chosen_settings(given, config)
    seeds = Seeds.create(folder, config, numbers, chosen)
    with _lock(seeds):
        try:
            seeds.study = start_study(
                folder, [_group(seeds)], storage=storage, artifacts=artifacts, heartbeat=heartbeat, new=True
            )
        except UserError:
            if storage is not None:  # it is down, or has a study of this name; a journal that was begun is continued
                (folder / SEEDS_FILE).unlink()
            raise
        return _fit(seeds, root, jobs, progress, tensorboard)


def resume_seeds(
    path: str | os.PathLike[str],
    *,
    epochs: int | None = None,
    root: str | Path | None = None,
    jobs: int | None = None,
    progress: StudyProgress | bool | None = True,
    tensorboard: bool = False,
    storage: str | None = None,
    artifacts: str | Path | ArtifactStore | None = None,
    heartbeat: int = HEARTBEAT,
) -> Seeds:
    """Resume the seeds that have not finished, try those that failed again, or train all seeds for more epochs.

    Args:
        path: The seeds, or their folder.
        epochs: The new total number of epochs, as in `resume`; diverged seeds are unchanged.
        root: Folder of the known datasets.
        jobs: As in `train_seeds`.
        progress: As in `train_seeds`.
        tensorboard: Write TensorBoard events for every run.
        storage: The server's address, if it needs a password; by default, the storage that the study was started with.
        artifacts: The artifact store, if it is not at the place that the study was started with.
        heartbeat: As in `train_seeds`.

    Returns:
        The runs and their summary.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.studies import resume_seeds, train_seeds
        >>> from verydeep.training import ModelConfig, TrainConfig
        >>> config = TrainConfig(DataConfig("digits"), ModelConfig(depth=3, width=8), epochs=1)
        >>> seeds = train_seeds(config, 1, "runs/digits-seeds")
        >>> seeds = resume_seeds("runs/digits-seeds", epochs=2)
        >>> [run.summary.epochs for run in seeds.runs.values()]
        [2]
    """
    seeds = Seeds.load(path, storage=storage)
    with _lock(seeds), storage_errors():
        options: dict[str, Any] = {"storage": storage, "artifacts": artifacts, "heartbeat": heartbeat}
        if (seeds.path / "study.json").exists():
            seeds.study = open_study(seeds.path, **options)
        else:  # seeds of an earlier version, or a start that was killed at once
            seeds.study = start_study(seeds.path, [_group(seeds)], **options)
        _record_runs(seeds)
        if epochs is not None and epochs != seeds.config.epochs:
            seeds.change_epochs(epochs)
        seeds.study.set_group(_group(seeds))
        seeds.study.retry_failed()
        return _fit(seeds, root, jobs, progress, tensorboard)


def _lock(seeds: Seeds) -> AbstractContextManager[None]:
    return exclusive_lock(seeds.path / "lock", f"{seeds.path} is being trained by another process", wait=False)


def _group(seeds: Seeds) -> Group:
    return Group("", seeds.config, seeds=seeds.seeds)


def _record_runs(seeds: Seeds) -> None:
    """Record runs that have ended outside the study: with an earlier version, or continued on their own."""
    study = seeds.study
    with study.store.claiming():
        study.store.release_dead(study.optuna)
        for task in study.tasks():
            run = seeds.runs.get(task.number)
            if task.state == "running" or run is None or run.summary is None:
                continue
            metrics, result = run.tested_metrics, task.attempts.result
            if result is None or result["epochs"] != len(metrics):
                study.add_result(task.name, run.summary.status, metrics, of=run.config.epochs)


def _fit(
    seeds: Seeds, root: str | Path | None, jobs: int | None, progress: StudyProgress | bool | None, tensorboard: bool
) -> Seeds:
    """Train what is left, and write the summary."""
    with interruptible() as interrupt:
        ending = run_study(
            seeds.study, jobs=jobs, root=root, tensorboard=tensorboard, progress=progress, allow_failures=True
        )
        if interrupt.requested and ending != "complete":
            raise SeedsInterrupted(seeds)
    records = seeds.records
    if all(record.status == "failed" or not record.has_ended for record in records):
        reason = records[0].reason or "its worker ended before the training did"
        raise UserError(f"every seed failed: {reason} (logs are in {seeds.path / 'workers'})")
    seeds.finish(records)
    return seeds
