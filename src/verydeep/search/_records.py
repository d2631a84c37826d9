"""What came of every trial, as plain values: for tables, pictures and files."""

import csv
import io
import json
import math
from dataclasses import dataclass, field
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from verydeep.search._attempts import best, epochs, live
from verydeep.search._distributions import decoded
from verydeep.search._space import Settings
from verydeep.search._study import Study


@dataclass(frozen=True)
class Record:
    """One trial.

    Attributes:
        trial: Its number, which with the search's seed decides its settings.
        status: finished, stopped early, diverged, pruned, failed (it cannot be trained), training, or waiting.
        value: Of the metric, at its best epoch; None where there is none, as for a diverged run.
        epochs: Trained so far.
        seconds: Time of training.
        settings: What it trains with; empty while nobody has decided that.
        attempts: How often it was begun or gone on with.
        run: The run's folder, on the machine of the worker.
        worker: Who trained it last.
        reason: Why it failed.
        curve: The metrics of every epoch.
        loss: Where the value is an accuracy, the lowest loss of the epochs that reached it.
    """

    trial: int
    status: str
    value: float | None = None
    epochs: int = 0
    seconds: float = 0.0
    settings: Settings = field(default_factory=dict)
    attempts: int = 0
    run: str = ""
    worker: str = ""
    reason: str = ""
    curve: list[dict[str, Any]] = field(default_factory=list)
    loss: float | None = None


def records(study: Study) -> list[Record]:
    """Every trial of a study, by its number."""
    return [_record(study, setting, tries) for setting, tries in enumerate(study.attempts())]


def ranked(found: list[Record], maximise: bool) -> list[Record]:
    """Trials with a result, the best first, of equally accurate ones that of the lowest loss; diverged ones last."""
    ended = [record for record in found if record.status not in ("training", "waiting")]
    sign = -1 if maximise else 1

    def place(record: Record) -> tuple[float, float, int]:
        value = math.inf if record.value is None else sign * record.value
        return value, math.inf if record.loss is None else record.loss, record.trial

    return sorted(ended, key=place)


def epochs_trained(study: Study) -> int:
    """Of all trials together; an epoch that was trained again after a crash counts once."""
    return sum(max(map(epochs, tries), default=0) for tries in study.attempts())


def to_csv(found: list[Record]) -> str:
    """A line a trial."""
    names = sorted({name for record in found for name in record.settings})
    facts = ("trial", "status", "value", "loss", "epochs", "seconds", "attempts", "worker", "run", "reason")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*facts, *names])
    for record in found:
        row = [getattr(record, fact) for fact in facts] + [record.settings.get(name) for name in names]
        writer.writerow(["" if value is None else value for value in row])
    return text.getvalue()


def to_json(study: Study, found: list[Record]) -> str:
    """Everything, curves included."""
    values = {
        "study": study.name,
        "metric": study.config.metric,
        "config": study.config.as_dict(),
        "trials": [vars(record) for record in found],
    }
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def _record(study: Study, setting: int, tries: list[FrozenTrial]) -> Record:
    trial = live(tries)
    begun = [each for each in tries if each.state != TrialState.WAITING and "worker" in each.user_attrs]
    latest = trial if trial is not None and trial.params else begun[-1] if begun else trial
    known = latest is not None and latest.params.keys() == study.config.space.keys()
    settings = decoded(study.config.space, latest.params) if latest is not None and known else {}
    worker = str(begun[-1].user_attrs["worker"]) if begun else ""
    if trial is None or "result" not in trial.user_attrs or not trial.state.is_finished():
        status = "training" if trial is not None and trial.state == TrialState.RUNNING else "waiting"
        curve = [] if latest is None else [_finite(v) for _, v in sorted(latest.intermediate_values.items())]
        value = best(curve, study.config.maximise)
        reached = max(map(epochs, tries), default=0)
        return Record(setting, status, value, reached, settings=settings, attempts=len(begun), worker=worker)
    result = json.loads(trial.user_attrs["result"])
    value = None if trial.value is None else _finite(trial.value)
    loss = _loss_beside(study.config.metric, value, result["curve"])
    return Record(setting, value=value, settings=settings, attempts=len(begun), worker=worker, loss=loss, **result)


def _loss_beside(metric: str, value: float | None, curve: list[dict[str, Any]]) -> float | None:
    if not metric.endswith("accuracy") or value is None:
        return None
    losses = [line.get(metric.replace("accuracy", "loss")) for line in curve if line.get(metric) == value]
    return min((loss for loss in losses if loss is not None), default=None)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
