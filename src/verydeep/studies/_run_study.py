"""A study on this machine: workers side by side until everything is trained."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Literal

from verydeep.errors import UserError
from verydeep.studies._budget import Budget
from verydeep.studies._progress import StudyProgress, StudyTable, choose_study_progress
from verydeep.studies._records import TrainingRecord
from verydeep.studies._study import Study
from verydeep.studies.storage._postgres import STORAGE_ERRORS, storage_errors
from verydeep.studies.worker._pool import PoolOptions, WorkerPool, unless_interrupted
from verydeep.training import EpochMetrics, Interrupt, interruptible

StopReason = Literal["complete", "interrupted", "the budget is used up", "a worker failed"]
OnEpoch = Callable[[TrainingRecord, EpochMetrics], None]
OnEnd = Callable[[TrainingRecord], None]
_READ_EVERY = 2.0  # seconds
_PAUSE = 10  # times as long as it takes to read a large study, because workers need the cores, and others the server
_LONGEST_PAUSE = 10.0  # seconds


def run_study(
    study: Study,
    *,
    jobs: int | None = None,
    budget: Budget | None = None,
    only: Collection[str] | None = None,
    root: str | Path | None = None,
    tensorboard: bool = False,
    progress: StudyProgress | bool | None = True,
    on_epoch: OnEpoch | None = None,
    on_end: OnEnd | None = None,
    allow_failures: bool = False,
) -> StopReason:
    """Train a study in parallel, until everything is trained, the budget is used up, or someone presses Ctrl-C.

    Each worker is a process. A study that was stopped continues with the same call, and workers on other machines may
    join at any time: `verydeep worker FOLDER`.

    In a study that is open, `on_end` may add groups, and workers wait for them; see `Study.set_open`. Results of
    earlier calls are reported before workers start, so a program that was killed before it added a group does so now.

    Args:
        study: The study.
        jobs: The number of workers; by default one per core, or a single one on a GPU. With 0, this process only
            waits for workers elsewhere.
        budget: When to stop; by default, when everything is trained.
        only: The names of groups or single trainings to train; by default, all.
        root: Folder of the known datasets.
        tensorboard: Write TensorBoard events for every run.
        progress: True shows a table that updates itself in a terminal or a notebook, and nothing elsewhere; False and
            None show nothing. Your own display is a `StudyProgress`.
        on_epoch: Called once for every epoch of every training, also for those of earlier calls.
        on_end: Called once for every training that has a result, also for those of earlier calls.
        allow_failures: Return `"a worker failed"` instead of raising an error if trainings are left that no worker
            here can train.

    Returns:
        Why it stopped: `"complete"`, `"interrupted"`, `"the budget is used up"` or, with `allow_failures`,
        `"a worker failed"`.

    Raises:
        UserError: What is left cannot be trained here; the message says why.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.studies import Group, run_study, start_study
        >>> from verydeep.training import ModelConfig, TrainConfig
        >>> config = TrainConfig(DataConfig("digits"), ModelConfig(depth=2, width=8), epochs=1)
        >>> study = start_study("runs/seeds", [Group("", config, seeds=(0, 1))])
        >>> run_study(study, jobs=1)
        'complete'
        >>> [record.status for record in study.records()]
        ['finished', 'finished']
    """
    if jobs is not None and jobs < 0:
        raise UserError(f"jobs must be 0 or more, got {jobs}")
    with storage_errors(), interruptible() as interrupt:
        watch = _Watch(study, only, interrupt, choose_study_progress(progress), on_epoch, on_end)
        records = watch.read()
        is_open = study.is_open
        left = [task for task in study.tasks(only) if task.state != "done"]
        if not left and not is_open:
            return "complete"
        configs = [task.group.config for task in left] or [group.config for group in study.groups]
        jobs = free_cores(configs[0].device, configs[0].threads) if jobs is None else jobs
        jobs = jobs if is_open else min(len(left), jobs)
        budget = budget or Budget()
        pool = WorkerPool(study, jobs, PoolOptions(root, budget, only, tensorboard))
        watch.progress.budget = budget
        watch.progress.start(study, jobs, records)
        interrupt.is_displayed = isinstance(watch.progress, StudyTable)
        try:
            pool.run_until_done(interrupt, watch.poll)
            with unless_interrupted(interrupt):
                watch.progress.update(study.store.with_retry(watch.read))
        finally:
            interrupt.is_displayed = False
            watch.progress.close()
        with unless_interrupted(interrupt):
            is_open = study.store.with_retry(lambda: study.is_open)
            if not study.store.with_retry(lambda: study.unfinished(only)) and not is_open:
                return "complete"
        if pool.problems and not allow_failures:
            raise UserError(f"a worker failed: {pool.problems[0]} (logs are in {study.folder / 'workers'})")
        stopped: StopReason = "interrupted" if interrupt.requested else "the budget is used up"
        return "a worker failed" if pool.problems else stopped


class _Watch:
    """Reads the study from time to time, and tells what is new."""

    def __init__(
        self,
        study: Study,
        only: Collection[str] | None,
        interrupt: Interrupt,
        progress: StudyProgress,
        on_epoch: OnEpoch | None,
        on_end: OnEnd | None,
    ) -> None:
        self.study, self.only, self.interrupt, self.progress = study, only, interrupt, progress
        self.on_epoch, self.on_end = on_epoch, on_end
        self.seen, self.took, self.stops = 0.0, 0.0, False
        self.epochs: dict[str, int] = {}
        self.ended: dict[str, tuple[str, int]] = {}

    def poll(self, messages: list[dict[str, Any]]) -> None:
        """Handle messages of workers; an epoch, or time, is a reason to read the study."""
        if self.interrupt.requested and not self.stops:
            self.stops = True
            self.progress.stop()
        for message in messages:
            if "done" in message:
                self.progress.step(message["training"], message["done"], message["loss"], message["accuracy"])
        wait = 0.0 if any("epoch" in message for message in messages) else _READ_EVERY
        if time.monotonic() - self.seen >= max(wait, min(_PAUSE * self.took, _LONGEST_PAUSE)):
            self.progress.update(self._read_with_retry())

    def _read_with_retry(self) -> list[TrainingRecord]:
        try:
            return self.read()
        except STORAGE_ERRORS:
            if not self.interrupt.requested:
                self.progress.wait()
            return self.study.store.with_retry(self.read)

    def read(self) -> list[TrainingRecord]:
        """Read the study and report epochs and results that were not reported before.

        In an open study, what is reported may add trainings, so it is read again.
        """
        while True:
            began, is_open = time.monotonic(), self.study.is_open
            records = self.study.records(self.only)
            self.took = time.monotonic() - began
            has_ended = self._report(records)
            self.seen = time.monotonic()
            if not (is_open and has_ended):
                return records

    def _report(self, records: list[TrainingRecord]) -> bool:
        """Report what was not reported before; return whether there were results."""
        has_ended = False
        for record in records:
            for metrics in record.curve[self.epochs.get(record.name, 0) :]:
                if self.on_epoch is not None:
                    self.on_epoch(record, metrics)
                self.epochs[record.name] = metrics.epoch
            result = record.status, record.epochs
            if record.has_ended and self.ended.get(record.name) != result:
                self.ended[record.name], has_ended = result, True
                if self.on_end is not None:
                    self.on_end(record)
        return has_ended


def free_cores(device: str, threads: int | None) -> int:
    """How many workers fit on this machine."""
    if device != "cpu":
        import torch

        if device != "auto" or torch.cuda.is_available():
            return 1
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, cores // (threads or 1))
