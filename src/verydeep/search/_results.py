"""The results of a search: every trial as plain values, their ranking, and the importance of each setting."""

import csv
import io
import json
import math
from dataclasses import dataclass, field

import optuna
from optuna.trial import FrozenTrial, TrialState, create_trial

from verydeep.search._sampling import decode_settings, encode_settings, optuna_distributions
from verydeep.search._space import Settings, Space
from verydeep.search.storage._store import quiet_optuna
from verydeep.search.study._study import Study, best_value, current_attempt, epochs_reached
from verydeep.training import EpochMetrics

_FEWEST = 4  # trials


@dataclass(frozen=True, repr=False)
class TrialRecord:
    """One trial of a search and its result.

    Attributes:
        trial: Its number; with the search's seed, it decides the settings.
        status: finished, stopped early, diverged, pruned, failed (it cannot be trained), training, or waiting.
        value: The metric at its best epoch; None if there is none, as for a diverged run.
        epochs: Epochs trained so far.
        seconds: Training time.
        settings: The settings it trains with; empty until they are decided.
        attempts: How often a worker has started or continued it.
        run: The run's folder, on the machine of the worker.
        worker: The worker that trained it last.
        reason: Why it failed.
        curve: The metrics of every epoch.
        loss: If the value is an accuracy, the lowest loss among the epochs that reached it.

    Example:
        >>> from verydeep.search import TrialRecord
        >>> TrialRecord(3, "finished", 0.95, epochs=20, settings={"optim.lr": 0.1, "model.depth": 7})
        TrialRecord(3, finished, 0.95 after 20 epochs, optim.lr=0.1, model.depth=7)
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
    curve: list[EpochMetrics] = field(default_factory=list)
    loss: float | None = None

    def __repr__(self) -> str:
        value = "" if self.value is None else f"{self.value:.4g} "
        epochs = f"after {self.epochs} {'epoch' if self.epochs == 1 else 'epochs'}" if self.epochs else ""
        settings = [f"{name}={value!r}" for name, value in self.settings.items()]
        parts = [str(self.trial), self.status, (value + epochs).strip(), self.reason, *settings]
        return f"TrialRecord({', '.join(part for part in parts if part)})"


def records(study: Study) -> list[TrialRecord]:
    """Return every trial of a study, in the order of their numbers.

    Args:
        study: The study.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.search import Choices, Options, SearchConfig, records, start_study
        >>> from verydeep.training import TrainConfig
        >>> base, space = TrainConfig(DataConfig("digits")), {"model.depth": Choices((3, 5))}
        >>> config = SearchConfig(base, space, Options(trials=2))
        >>> study = start_study("runs/depths", config)
        >>> [record.status for record in records(study)]
        ['waiting', 'waiting']
    """
    return [_record(study, trial, attempts) for trial, attempts in enumerate(study.attempts())]


def ranked(trials: list[TrialRecord], maximise: bool) -> list[TrialRecord]:
    """Sort the completed trials, best first.

    A lower loss decides between equal accuracies, and diverged trials come last.

    Args:
        trials: The trials.
        maximise: Whether higher values are better: `study.config.maximise`.

    Example:
        >>> from verydeep.search import TrialRecord, ranked
        >>> trials = [TrialRecord(0, "finished", 0.8), TrialRecord(1, "finished", 0.9), TrialRecord(2, "waiting")]
        >>> [record.trial for record in ranked(trials, maximise=True)]
        [1, 0]
    """
    ended = [record for record in trials if record.status not in ("training", "waiting")]
    sign = -1 if maximise else 1

    def place(record: TrialRecord) -> tuple[float, float, int]:
        value = math.inf if record.value is None else sign * record.value
        return value, math.inf if record.loss is None else record.loss, record.trial

    return sorted(ended, key=place)


def epochs_trained(study: Study) -> int:
    """The epochs of all trials together; an epoch that was trained again after a crash counts once."""
    return sum(map(epochs_reached, study.attempts()))


def to_csv(trials: list[TrialRecord]) -> str:
    """Format trials as CSV, one line per trial.

    Args:
        trials: The trials.

    Example:
        >>> from verydeep.search import TrialRecord, to_csv
        >>> print(to_csv([TrialRecord(0, "finished", 0.8, settings={"optim.lr": 0.1})]))
        trial,status,value,loss,epochs,seconds,attempts,worker,run,reason,optim.lr
        0,finished,0.8,,0,0.0,0,,,,0.1
    """
    names = sorted({name for record in trials for name in record.settings})
    columns = ("trial", "status", "value", "loss", "epochs", "seconds", "attempts", "worker", "run", "reason")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*columns, *names])
    for record in trials:
        row = [getattr(record, column) for column in columns] + [record.settings.get(name) for name in names]
        writer.writerow(["" if value is None else value for value in row])
    return text.getvalue()


def to_json(study: Study, trials: list[TrialRecord]) -> str:
    """Format all trials as JSON, with the metrics of every epoch.

    Args:
        study: The study.
        trials: Its trials.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.search import Choices, Options, SearchConfig, records, start_study, to_json
        >>> from verydeep.training import TrainConfig
        >>> base, space = TrainConfig(DataConfig("digits")), {"model.depth": Choices((3, 5))}
        >>> config = SearchConfig(base, space, Options(trials=2))
        >>> study = start_study("runs/depths", config)
        >>> to_json(study, records(study)).startswith('{')
        True
    """
    values = {
        "study": study.name,
        "metric": study.config.metric,
        "config": study.config.as_dict(),
        "trials": [vars(record) | {"curve": [line.to_dict() for line in record.curve]} for record in trials],
    }
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def scored(trials: list[TrialRecord], maximise: bool) -> list[TrialRecord]:
    """The trials that importance is computed from, best first."""
    return [record for record in ranked(trials, maximise) if record.status != "failed" and record.settings]


def importance(trials: list[TrialRecord], space: Space, maximise: bool) -> dict[str, float]:
    """Estimate how much each setting matters, by functional ANOVA (Hutter et al. 2014).

    The estimates are computed from the ranks of the trials, because losses span decades, and a diverged run has none:
    it ranks last.

    Args:
        trials: The trials.
        space: The settings that were searched.
        maximise: Whether higher values are better: `study.config.maximise`.

    Returns:
        The importance of each setting, largest first; they add up to 1. Empty for fewer than four trials or a single
        setting.

    Example:
        >>> from verydeep.search import Range, TrialRecord, importance
        >>> space = {"optim.lr": Range(0.0, 1.0), "optim.momentum": Range(0.0, 1.0)}
        >>> settings = [{"optim.lr": n / 10, "optim.momentum": n % 3 / 3} for n in range(10)]
        >>> trials = [TrialRecord(n, "finished", n / 10, settings=s) for n, s in enumerate(settings)]
        >>> list(importance(trials, space, maximise=True))
        ['optim.lr', 'optim.momentum']
    """
    ended = scored(trials, maximise)
    if len(ended) < _FEWEST or len(space) < 2:
        return {}
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances  # slow, and no worker needs it

    distributions = optuna_distributions(space)
    with quiet_optuna():
        study = optuna.create_study()
        for rank, record in enumerate(ended):
            params = encode_settings(space, record.settings)
            study.add_trial(create_trial(params=params, distributions=distributions, value=float(rank)))
        shares = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0))
    return {name: float(share) for name, share in shares.items()}


def _record(study: Study, trial: int, attempts: list[FrozenTrial]) -> TrialRecord:
    current = current_attempt(attempts)
    begun = [each for each in attempts if each.state != TrialState.WAITING and "worker" in each.user_attrs]
    latest = current if current is not None and current.params else begun[-1] if begun else current
    settings = (None if latest is None else decode_settings(study.config.space, latest.params)) or {}
    worker = str(begun[-1].user_attrs["worker"]) if begun else ""
    if current is None or "result" not in current.user_attrs or not current.state.is_finished():
        status = "training" if current is not None and current.state == TrialState.RUNNING else "waiting"
        curve = [] if latest is None else [_finite(v) for _, v in sorted(latest.intermediate_values.items())]
        value, epochs = best_value(curve, study.config.maximise), epochs_reached(attempts)
        return TrialRecord(trial, status, value, epochs, settings=settings, attempts=len(begun), worker=worker)
    result = json.loads(current.user_attrs["result"])
    value = None if current.value is None else _finite(current.value)
    result["curve"] = [EpochMetrics.from_dict(line) for line in result["curve"]]
    loss = _loss_beside(study.config.metric, value, result["curve"])
    return TrialRecord(trial, value=value, settings=settings, attempts=len(begun), worker=worker, loss=loss, **result)


def _loss_beside(metric: str, value: float | None, curve: list[EpochMetrics]) -> float | None:
    if not metric.endswith("accuracy") or value is None:
        return None
    losses = [getattr(line, metric.replace("accuracy", "loss")) for line in curve if getattr(line, metric) == value]
    return min((loss for loss in losses if loss is not None and math.isfinite(loss)), default=None)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
