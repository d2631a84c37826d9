"""A worker: claims and trains one training after another until the study is complete."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from verydeep.cpu import cpu_settings
from verydeep.errors import UserError
from verydeep.studies._budget import Budget
from verydeep.studies._claim import (
    Claim,
    LostTraining,
    claim_training,
    finish_training,
    is_compared,
    release_training,
    report_epochs,
    report_start,
    report_teacher,
    upload_run,
)
from verydeep.studies._schedule import StudyTask
from verydeep.studies._study import Study
from verydeep.studies.storage._postgres import STORAGE_ERRORS, storage_errors
from verydeep.studies.worker._training import (
    DatasetCache,
    ImpossibleError,
    Paused,
    TrainingEvents,
    check_training,
    checked_config,
    train_run,
    training_config,
)
from verydeep.training import EpochMetrics, Interrupt, Interrupted, Run, TensorBoard, interruptible
from verydeep.words import plural

CRASHED = 3  # the exit code of a worker process after an unexpected error in a training
MOST_DEATHS = 3  # a training that kills its workers this often without getting further would kill the next one too
_MOST_PROBLEMS = 3  # in a row, after which a worker gives up: the fault is probably this machine's
_RETRY_AFTER = 1.0  # seconds until an idle worker checks whether another one has died
_REPORT_EVERY = 1.0  # seconds between reports of epochs: of short ones, several are reported together
_PATIENCE = 3  # how often an idle worker checks before it takes trainings whose checkpoints are on other machines

Send = Callable[[Mapping[str, object]], None]


def _ignore(_: object) -> None:
    """Do nothing."""


def work(
    study: Study,
    *,
    root: str | Path | None = None,
    budget: Budget | None = None,
    only: Collection[str] | None = None,
    tensorboard: bool = False,
    report: Callable[[str], None] = _ignore,
    send: Send = _ignore,
) -> bool:
    """Train in this process, one training after another; any number of workers on any machine can share a study.

    Args:
        study: The study; runs go to its folder.
        root: Folder of the known datasets.
        budget: When to stop, unless everything is trained before.
        only: The names of groups or single trainings to train; by default, all.
        tensorboard: Write TensorBoard events for every run.
        report: Called with one line for every training that ends, such as `print`.
        send: Called with a message about every epoch and, a few times per second, the current step.

    Returns:
        Whether the study is complete; it is not if the budget was used up or someone interrupted. In a study that
        is open, a worker waits for more trainings.

    Raises:
        UserError: What is left cannot be trained on this machine; the message says why.
        TrainingCrashed: An unexpected error, its cause, ended a training.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.studies import Group, start_study, work
        >>> from verydeep.training import ModelConfig, TrainConfig
        >>> config = TrainConfig(DataConfig("digits"), ModelConfig(depth=2, width=8), epochs=1)
        >>> study = start_study("runs/seeds", [Group("", config, seeds=(0, 1))])
        >>> work(study, report=print)
        seed-0: finished after 1 epoch
        seed-1: finished after 1 epoch
        True
    """
    worker = _Worker(study, DatasetCache(root), budget or Budget(), only, tensorboard, report, send)
    alive, limited = study.store.working(worker.name), _interrupt_after(worker.budget.seconds)
    with cpu_settings(), storage_errors(), interruptible() as interrupt, alive, limited:
        try:
            return worker.run(interrupt)
        except STORAGE_ERRORS:
            if interrupt.requested:  # everything is saved; the others notice that this worker has gone
                return False
            raise


class TrainingCrashed(Exception):  # noqa: N818 - its cause is the error
    """An unexpected error ended a training, and this worker; another one may try it again."""


class _Worker:
    """The state of one worker."""

    def __init__(
        self,
        study: Study,
        data: DatasetCache,
        budget: Budget,
        only: Collection[str] | None,
        tensorboard: bool,
        report: Callable[[str], None],
        send: Send,
    ) -> None:
        self.study, self.data, self.budget, self.only = study, data, budget, only
        self.tensorboard, self.report, self.send = tensorboard, report, send
        self.name = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:6]}"  # tells people where it runs
        self.problems: dict[str, str] = {}  # trainings that this worker cannot train, and why
        self.idle = self.problems_in_a_row = 0
        self.waits = False  # for groups that are added to an open study

    def run(self, interrupt: Interrupt) -> bool:
        """Train until the study is complete, the budget is used up or someone interrupts."""
        while not interrupt.requested and not self._is_used():
            claim = self.study.store.with_retry(self._claim)
            if claim is not None:
                self.idle, self.waits = 0, False
                self._train(claim, interrupt)
                continue
            # In this order: whoever closes a study has added everything before.
            is_open = self.study.store.with_retry(lambda: self.study.is_open)
            left = self.study.store.with_retry(self._left)
            if left:
                if all(self._is_hopeless(name, left) for name in left):
                    raise UserError(next(self.problems[name] for name in left if name in self.problems))
                self.idle += 1
            elif not is_open:
                return True
            elif not self.waits:
                self.waits = True
                self.report("everything is trained so far; waiting for more trainings")
            time.sleep(_RETRY_AFTER)
        return False

    def _claim(self) -> Claim | None:
        return claim_training(
            self.study, self.name, self._is_here, self.only, self.problems, patient=self.idle < _PATIENCE
        )

    def _left(self) -> dict[str, StudyTask]:
        return {task.name: task for task in self.study.tasks(self.only) if task.state != "done"}

    def _is_hopeless(self, training: str, left: Mapping[str, StudyTask]) -> bool:
        """Whether this worker cannot train it, nor the teacher it waits for, and no other worker does."""
        task = left[training]
        if task.state == "blocked":
            return self._is_hopeless(task.group.after or "", left)
        return task.state == "ready" and training in self.problems

    def _is_here(self, training: str) -> bool:
        return (self.study.run_path(training) / "config.json").exists()

    def _is_used(self) -> bool:
        epochs = self.budget.epochs
        return epochs is not None and self.study.store.with_retry(self.study.epochs_trained) >= epochs

    def _train(self, claim: Claim, interrupt: Interrupt) -> None:
        """Train one training until it has a result or is released."""
        study = self.study
        try:
            with study.store.heartbeats(claim.trial_id):
                result, curve = self._result(claim, _Events(self, claim, interrupt))
                if result["status"] in ("finished", "stopped early"):
                    study.store.with_retry(lambda: self._upload(claim))
            tested = Run.load(result["run"]).measured if result["status"] in ("finished", "stopped early") else None
            study.store.with_retry(lambda: finish_training(study, claim, result, curve, tested))
            self.problems_in_a_row = 0
            why = f" ({result['reason']})" if result.get("reason") else ""
            self.report(f"{claim.name}: {result['status']} after {plural(result['epochs'], 'epoch')}{why}")
        except (Interrupted, Paused):
            study.store.with_retry(lambda: release_training(study, claim))
        except LostTraining:
            self.report(f"{claim.name}: given to another worker")
        except UserError as error:
            self.problems[claim.name] = problem = str(error)
            self.problems_in_a_row += 1
            study.store.with_retry(lambda: release_training(study, claim, problem=problem))
            self.report(f"{claim.name}: {problem}")
            if self.problems_in_a_row >= _MOST_PROBLEMS:
                raise
        except BaseException as error:
            # An unexpected error, such as too little memory, may be the settings' fault: it counts as a worker's death.
            crashed = isinstance(error, Exception) and not isinstance(error, STORAGE_ERRORS)
            with suppress(*STORAGE_ERRORS):
                release_training(study, claim, died=crashed, problem=_one_line(error) if crashed else "")
            if crashed:
                raise TrainingCrashed(claim.name) from error
            raise

    def _result(self, claim: Claim, events: _Events) -> tuple[dict[str, Any], list[EpochMetrics]]:
        """Train and describe how it ended; a training that diverged, was pruned or cannot be trained has a result too.

        Other errors are raised: a run that is held, a missing GPU or damaged data say nothing about the settings.
        """
        path = self.study.run_path(claim.name)
        if claim.deaths >= MOST_DEATHS:
            return _failed(f"{claim.deaths} workers died while training it; {claim.problem or 'out of memory?'}"), []
        try:
            config, dataset = checked_config(claim.group, claim.number, claim.settings, self.study.folder, self.data)
            if not (path / "config.json").exists():
                check_training(config, dataset, bool(claim.settings))
        except ImpossibleError as error:
            return _failed(str(error)), []
        if claim.group.after is not None:
            self._provide(claim.group.after, events)
        try:
            run = train_run(config, path, self.data, events, TensorBoard if self.tensorboard else lambda each: each)
        except (Interrupted, Paused) as stopped:
            events.flush()
            if str(stopped) not in ("pruned", "paused"):
                raise
            return _described(Run.load(path), str(stopped))
        events.flush()  # the last ones, of a training that stopped early or diverged
        assert run.summary is not None
        return _described(run, run.summary.status)

    def _provide(self, teacher: str, events: _Events) -> None:
        """Make sure that a finished training is on this machine: fetch it, or train it again to the same bits."""
        study = self.study
        if study.store.with_retry(lambda: study.fetch_run(teacher)) is not None:
            return
        self.report(f"{teacher}: trained again, because this machine does not have it")
        groups, records = study.store.with_retry(lambda: (study.groups, study.records([teacher])))
        record = next(record for record in records if record.name == teacher)
        group = next(group for group in groups if group.name == record.group)
        config = training_config(group, record.number, record.settings, study.folder)
        train_run(config, study.run_path(teacher), self.data, _TeacherEvents(events))

    def _upload(self, claim: Claim) -> None:
        """Share a run that others need: a teacher, or the best of its group so far."""
        study = self.study
        if study.artifacts is None:
            return
        values = {record.name: record.value for record in study.records([claim.group.name])}
        known = [value for value in values.values() if value is not None]
        is_best = bool(known) and values[claim.name] == (max if study.maximise else min)(known)
        if study.shares_all or is_best or claim.name in {group.after for group in study.groups}:
            upload_run(study, claim)


class _Events(TrainingEvents):
    """Reports what happens to the storage, and to the process that started this one."""

    def __init__(self, worker: _Worker, claim: Claim, interrupt: Interrupt) -> None:
        self.worker, self.claim, self.interrupt = worker, claim, interrupt
        self.lines, self.reported = list[EpochMetrics](), time.monotonic()

    def start(self, environment: dict[str, Any], position: float) -> None:
        study = self.worker.study
        study.store.with_retry(lambda: report_start(study, self.claim, environment, position))

    def epoch(self, metrics: EpochMetrics) -> None:
        claim = self.claim
        self.lines.append(metrics)
        is_late = time.monotonic() - self.reported >= _REPORT_EVERY
        # A budget of epochs is checked against what all workers have reported.
        pruned = (
            is_late or is_compared(claim, metrics.epoch) or self.worker.budget.epochs is not None
        ) and self.flush()
        pauses = claim.goal < claim.group.config.epochs and metrics.epoch >= claim.goal
        if pruned or pauses or self.worker._is_used():
            raise Paused("pruned" if pruned else "paused" if pauses else "")

    def flush(self) -> bool:
        """Report the epochs that have not been reported; return whether successive halving ends the training."""
        if not self.lines:
            return False
        study, lines = self.worker.study, self.lines
        pruned = study.store.with_retry(lambda: report_epochs(study, self.claim, *lines))
        self.lines, self.reported = [], time.monotonic()
        self.worker.send({"training": self.claim.name, "epoch": lines[-1].epoch})
        return pruned

    def step(self, position: float, loss: float, accuracy: float) -> None:
        self.worker.send({"training": self.claim.name, "done": position, "loss": loss, "accuracy": accuracy})

    def wait(self) -> None:
        if self.interrupt.requested:
            raise Paused


class _TeacherEvents(TrainingEvents):
    """Reports only how far it is: the training is a copy of one that has been recorded.

    Otherwise, a student would be given up after a few deaths while its teacher makes progress.
    """

    def __init__(self, events: _Events) -> None:
        self.events = events

    def start(self, environment: dict[str, Any], position: float) -> None:
        study, claim = self.events.worker.study, self.events.claim
        study.store.with_retry(lambda: report_teacher(study, claim, position))

    def wait(self) -> None:
        self.events.wait()


def _described(run: Run, status: str) -> tuple[dict[str, Any], list[EpochMetrics]]:
    curve = run.metrics
    seconds = curve[-1].seconds if curve else 0.0
    result = {"status": status, "epochs": len(curve), "of": run.config.epochs, "seconds": seconds, "run": str(run.path)}
    return result, curve


def _one_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


def _failed(reason: str) -> dict[str, Any]:
    return {"status": "failed", "reason": reason, "epochs": 0, "seconds": 0.0, "run": ""}


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
