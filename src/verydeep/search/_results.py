"""The results of a search: trials as files, their ranking, and the importance of each setting."""

import csv
import io
import json
import math
from typing import Any

import optuna
from optuna.trial import create_trial

from verydeep.search._study import SearchStudy
from verydeep.studies import Space, TrainingRecord, encode_settings, optuna_distributions, quiet_optuna

_FEWEST = 4  # trials
_COLUMNS = ("trial", "status", "value", "loss", "epochs", "seconds", "attempts", "worker", "run", "reason")


def ranked(trials: list[TrainingRecord], maximise: bool) -> list[TrainingRecord]:
    """Sort the completed trials, best first.

    A lower loss decides between equal accuracies, and diverged trials come last.

    Args:
        trials: The trials.
        maximise: Whether higher values are better: `study.config.maximise`.

    Example:
        >>> from verydeep.search import ranked
        >>> from verydeep.studies import TrainingRecord
        >>> trials = [TrainingRecord(number, "finished", value) for number, value in enumerate((0.8, 0.9))]
        >>> [record.number for record in ranked(trials, maximise=True)]
        [1, 0]
    """
    ended = [record for record in trials if record.status not in ("training", "waiting")]
    sign = -1 if maximise else 1

    def place(record: TrainingRecord) -> tuple[float, float, int]:
        value = math.inf if record.value is None else sign * record.value
        return value, math.inf if record.loss is None else record.loss, record.number

    return sorted(ended, key=place)


def to_csv(trials: list[TrainingRecord]) -> str:
    """Format trials as CSV, one line per trial.

    Args:
        trials: The trials.

    Example:
        >>> from verydeep.search import to_csv
        >>> from verydeep.studies import TrainingRecord
        >>> print(to_csv([TrainingRecord(0, "finished", 0.8, settings={"optim.lr": 0.1})]))
        trial,status,value,loss,epochs,seconds,attempts,worker,run,reason,optim.lr
        0,finished,0.8,,0,0.0,0,,,,0.1
    """
    names = sorted({name for record in trials for name in record.settings})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_COLUMNS, *names])
    for record in trials:
        values = _values(record)
        row = [values[column] for column in _COLUMNS] + [record.settings.get(name) for name in names]
        writer.writerow(["" if value is None else value for value in row])
    return text.getvalue()


def to_json(study: SearchStudy, trials: list[TrainingRecord]) -> str:
    """Format all trials as JSON, with the metrics of every epoch.

    Args:
        study: The study.
        trials: Its trials.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.search import Choices, Options, SearchConfig, start_search, to_json
        >>> from verydeep.training import TrainConfig
        >>> base, space = TrainConfig(DataConfig("digits")), {"model.depth": Choices((3, 5))}
        >>> study = start_search("runs/depths", SearchConfig(base, space, Options(trials=2)))
        >>> to_json(study, study.records()).startswith('{')
        True
    """
    values = {
        "study": study.name,
        "metric": study.metric,
        "config": study.config.as_dict(),
        "trials": [_values(record) | {"curve": [line.to_dict() for line in record.curve]} for record in trials],
    }
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def _values(record: TrainingRecord) -> dict[str, Any]:
    """A trial as plain values; what all trials have in common is left out."""
    common = ("number", "name", "group", "goal", "environment", "curve")
    return {"trial": record.number} | {name: value for name, value in vars(record).items() if name not in common}


def scored(trials: list[TrainingRecord], maximise: bool) -> list[TrainingRecord]:
    """The trials that importance is computed from, best first."""
    return [record for record in ranked(trials, maximise) if record.status != "failed" and record.settings]


def importance(trials: list[TrainingRecord], space: Space, maximise: bool) -> dict[str, float]:
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
        >>> from verydeep.search import Range, importance
        >>> from verydeep.studies import TrainingRecord
        >>> space = {"optim.lr": Range(0.0, 1.0), "optim.momentum": Range(0.0, 1.0)}
        >>> settings = [{"optim.lr": n / 10, "optim.momentum": n % 3 / 3} for n in range(10)]
        >>> trials = [TrainingRecord(n, "finished", n / 10, settings=s) for n, s in enumerate(settings)]
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
