"""A worker: claims and trains one trial after another until the study is complete."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from verydeep.cpu import cpu_settings
from verydeep.errors import UserError
from verydeep.search._budget import Budget
from verydeep.search._results import epochs_trained
from verydeep.search.storage._postgres import storage_errors
from verydeep.search.study._claim import Claim, LostTrial, claim_trial, finish_trial, release_trial, report_epoch
from verydeep.search.study._study import Study
from verydeep.search.worker._trial import (
    DatasetCache,
    ImpossibleError,
    OnEpoch,
    Paused,
    check_trial,
    train_trial,
    trial_config,
)
from verydeep.training import EpochMetrics, Interrupt, Interrupted, Run, interruptible

MOST_DEATHS = 10  # a trial that kills its workers this often without getting further would kill the next one too

Print = Callable[[str], None]
_RETRY_AFTER = 1.0  # seconds until an idle worker checks whether another one has died


def work(
    study: Study,
    folder: str | Path,
    root: str | Path | None = None,
    budget: Budget | None = None,
    report: Print = lambda _: None,
) -> bool:
    """Train trials in this process, one after another with one thread each; any number of workers can share a study.

    Args:
        study: The study.
        folder: Its folder; runs go to its `trials`.
        root: Folder of the known datasets.
        budget: When to stop, unless all trials are done before.
        report: Called with one line for every completed trial, such as `print`.

    Returns:
        Whether the study is complete; it is not if the budget was used up or someone interrupted.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.search import Choices, Options, SearchConfig, start_study, work
        >>> from verydeep.training import ModelConfig, TrainConfig
        >>> base = TrainConfig(DataConfig("digits"), ModelConfig(width=8), epochs=1)
        >>> study = start_study("runs/depths", SearchConfig(base, {"model.depth": Choices((2, 3))}, Options(trials=2)))
        >>> work(study, "runs/depths", report=print)
        trial 0: finished after 1 epoch
        trial 1: finished after 1 epoch
        True
    """
    folder = Path(folder)
    worker, data, budget = _worker_name(), DatasetCache(root), budget or Budget()
    alive, limited = study.store.working(worker), _interrupt_after(budget.seconds)
    with cpu_settings(), storage_errors(), interruptible() as interrupt, alive, limited:
        while not interrupt.requested and not _is_used(study, budget):
            claim = study.store.with_retry(lambda: claim_trial(study, worker))
            if claim is None:
                if not study.store.with_retry(study.unfinished):
                    return True
                time.sleep(_RETRY_AFTER)
                continue
            _train(study, claim, folder / "trials" / f"{claim.trial:04}", data, budget, interrupt, report)
    return False


def _worker_name() -> str:
    """A unique name that tells people where the worker runs."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:6]}"


def _train(
    study: Study, claim: Claim, path: Path, data: DatasetCache, budget: Budget, interrupt: Interrupt, report: Print
) -> None:
    """Train one trial until it has a result or is released."""

    def watch(metrics: EpochMetrics) -> None:
        value = getattr(metrics, study.config.metric)
        ends = study.store.with_retry(lambda: report_epoch(study, claim, metrics.epoch, value))
        if ends or _is_used(study, budget):
            raise Paused("pruned" if ends else "")

    def wanted() -> None:
        if interrupt.requested:
            raise Paused

    try:
        with study.store.heartbeats(claim.trial_id):
            result = _result(study, claim, path, data, watch, wanted)
        study.store.with_retry(lambda: finish_trial(study, claim, result))
        epochs = f"{result['epochs']} {'epoch' if result['epochs'] == 1 else 'epochs'}"
        report(f"trial {claim.trial}: {result['status']} after {epochs}")
    except (Interrupted, Paused):
        release_trial(study, claim)
    except LostTrial:
        report(f"trial {claim.trial}: given to another worker")
    except BaseException as error:
        # An unexpected error, such as too little memory, may be the settings' fault: it counts as a worker's death.
        release_trial(study, claim, died=isinstance(error, Exception) and not isinstance(error, UserError))
        raise


def _result(
    study: Study,
    claim: Claim,
    path: Path,
    data: DatasetCache,
    watch: OnEpoch,
    wanted: Callable[[], None],
) -> dict[str, Any]:
    """Train a trial and describe how it ended; one that diverged, was pruned or cannot be trained has a result too.

    Other errors are raised: a run that is held, a missing GPU or damaged data say nothing about the settings.
    """
    if claim.deaths >= MOST_DEATHS:
        return _failed(f"{claim.deaths} workers died while training it; out of memory?")
    try:
        config, dataset = trial_config(study.config, claim.settings, data)
        if not (path / "config.json").exists():
            check_trial(config, dataset)
    except ImpossibleError as error:
        return _failed(str(error))
    try:
        run = train_trial(replace(config, threads=config.threads or 1), path, data, watch, wanted)
    except Paused as paused:
        if str(paused) != "pruned":
            raise
        return _described(Run.load(path), "pruned")
    assert run.summary is not None
    return _described(run, run.summary.status)


def _described(run: Run, status: str) -> dict[str, Any]:
    curve = run.metrics
    seconds, lines = curve[-1].seconds if curve else 0.0, [line.to_dict() for line in curve]
    return {"status": status, "epochs": len(curve), "seconds": seconds, "run": str(run.path), "curve": lines}


def _failed(reason: str) -> dict[str, Any]:
    return {"status": "failed", "reason": reason, "epochs": 0, "seconds": 0.0, "run": "", "curve": []}


def _is_used(study: Study, budget: Budget) -> bool:
    if budget.epochs is None:
        return False
    return study.store.with_retry(lambda: epochs_trained(study)) >= budget.epochs


@contextmanager
def _interrupt_after(seconds: float | None) -> Iterator[None]:
    """Stop as if by Ctrl-C when the time is over."""
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, signal.raise_signal, (signal.SIGINT,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
