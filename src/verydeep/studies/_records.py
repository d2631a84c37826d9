"""The trainings of a study as plain values."""

import json
import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from verydeep.studies._sampling import decode_settings
from verydeep.studies._schedule import StudyTask, epochs_reported, reported_together, reported_values
from verydeep.studies._space import Settings
from verydeep.training import EpochMetrics
from verydeep.words import LOWER_IS_BETTER, measure_of


@dataclass(frozen=True, repr=False)
class TrainingRecord:
    """One training of a study and its result.

    Attributes:
        number: Its number in a search, which with the seed decides the settings; otherwise its seed.
        status: finished, stopped early, diverged, pruned (stopped by halving), failed (it cannot be trained),
            paused (trained as far as asked), training, or waiting.
        value: The metric at its best epoch; None if there is none, as for a training that diverged.
        epochs: Epochs trained so far.
        seconds: Training time.
        settings: The searched settings it trains with; empty until they are decided.
        attempts: How often a worker has started or continued it.
        run: The run's folder, on the machine of the worker.
        worker: The worker that trained it last.
        reason: Why it failed or waits.
        curve: The metrics of every epoch.
        loss: If higher values are better, the lowest loss among the epochs that reached it.
        name: Its name in the study.
        group: The name of its group.
        goal: The epoch up to which it is to be trained.
        environment: Versions and machine that it was trained with last.

    Example:
        >>> from verydeep.studies import TrainingRecord
        >>> TrainingRecord(3, "finished", 0.95, epochs=20, settings={"optim.lr": 0.1, "model.depth": 7})
        TrainingRecord(3, finished, 0.95 after 20 epochs, optim.lr=0.1, model.depth=7)
    """

    number: int
    status: str
    value: float | None = None
    epochs: int = 0
    seconds: float = 0.0
    settings: Settings = field(default_factory=dict)
    attempts: int = 0
    run: str = ""
    worker: str = ""
    reason: str = ""
    curve: list[EpochMetrics] = field(default_factory=list)
    loss: float | None = None
    name: str = ""
    group: str = ""
    goal: int = 0
    environment: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        value = "" if self.value is None else f"{self.value:.4g} "
        epochs = f"after {self.epochs} {'epoch' if self.epochs == 1 else 'epochs'}" if self.epochs else ""
        settings = [f"{name}={value!r}" for name, value in self.settings.items()]
        parts = [self.name or str(self.number), self.status, (value + epochs).strip(), self.reason, *settings]
        return f"TrainingRecord({', '.join(part for part in parts if part)})"

    @property
    def has_ended(self) -> bool:
        """Whether there is nothing left to train: it is neither waiting nor training."""
        return self.status not in ("training", "waiting")

    @property
    def host(self) -> str:
        """The machine of the worker that trained it last."""
        return self.worker.rsplit("-", 2)[0]


def make_record(task: StudyTask, metric: str, maximise: bool) -> TrainingRecord:
    """The record of a training, from its attempts."""
    tried = task.attempts
    begun = [each for each in tried.trials if each.state != TrialState.WAITING and "worker" in each.user_attrs]
    ended = tried.ended
    latest = tried.open if tried.open is not None and tried.open.params else begun[-1] if begun else tried.open
    latest = ended if ended is not None and task.state == "done" else latest
    sampling = task.group.sampling
    settings = None if sampling is None or latest is None else decode_settings(sampling.space, latest.params)
    # The latest of equally long ones: only the attempt that ended has tested the saved weights.
    curve = max((_curve(trial) for trial in reversed(tried.trials)), key=len, default=[])
    if task.state == "done":
        status, reason = tried.status or "waiting", task.reason or str((tried.result or {}).get("reason", ""))
    else:
        status, reason = "training" if task.state == "running" else "waiting", task.reason or tried.problem
    result = tried.result or {}
    values = [line.get(metric) for line in curve] if curve else _reported(latest)
    value = None if status in ("diverged", "failed") else best_value(values, maximise)
    return TrainingRecord(
        task.number,
        status,
        value,
        epochs=int(result["epochs"]) if task.state == "done" and result else tried.epochs,
        seconds=curve[-1].seconds if curve else 0.0,
        settings=settings or {},
        attempts=len(begun),
        run=str(result.get("run", "")),
        worker=str(begun[-1].user_attrs["worker"]) if begun else "",
        reason=reason,
        curve=curve,
        loss=_loss_of_best(metric, value, curve),
        name=task.name,
        group=task.group.name,
        goal=task.goal,
        environment=_environment(begun),
    )


def best_value(curve: list[float | None], maximise: bool) -> float | None:
    """The best value of a curve; None if it has none."""
    values = [value for value in curve if value is not None and math.isfinite(value)]
    return (max if maximise else min)(values) if values else None


def _curve(trial: FrozenTrial) -> list[EpochMetrics]:
    """The metrics that an attempt has reported, up to the first gap."""
    curve = []
    together = {epoch: line for each in reported_together(trial) for epoch, line in each.curve.items()}
    for epoch in range(1, epochs_reported(trial) + 1):
        text = trial.user_attrs.get(f"metrics:{epoch}")
        line = together.get(epoch) if text is None else _parse(text)
        if line is None:
            break
        curve.append(line)
    if not curve and "result" in trial.user_attrs:  # of `Study.add_result`, or of an earlier version
        curve = list(_parse_curve(trial.user_attrs["result"]))
    return curve


@lru_cache(4096)
def _parse_curve(result: str) -> tuple[EpochMetrics, ...]:
    return tuple(EpochMetrics.from_dict(line) for line in json.loads(result).get("curve", []))


@lru_cache(1 << 16)
def _parse(text: str) -> EpochMetrics:
    return EpochMetrics.from_dict(json.loads(text))


def _reported(trial: FrozenTrial | None) -> list[float | None]:
    return [] if trial is None else [value for _, value in sorted(reported_values(trial).items())]


def _environment(begun: list[FrozenTrial]) -> dict[str, Any]:
    known = [trial.user_attrs["environment"] for trial in begun if "environment" in trial.user_attrs]
    return dict(json.loads(known[-1])) if known else {}


def _loss_of_best(metric: str, value: float | None, curve: list[EpochMetrics]) -> float | None:
    if measure_of(metric) in LOWER_IS_BETTER or value is None:
        return None
    name = metric.removesuffix(measure_of(metric)) + "loss"
    losses = [line.get(name) for line in curve if line.get(metric) == value]
    return min((loss for loss in losses if loss is not None and math.isfinite(loss)), default=None)
