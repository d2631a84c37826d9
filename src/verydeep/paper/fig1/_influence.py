"""How learning rate, gate bias and activation matter at each depth."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from verydeep.paper.fig1._summary import best_trials
from verydeep.paper.fig1._trials import Results
from verydeep.search import TrialRecord, importance


@dataclass(frozen=True)
class Influence:
    """What decides whether a network learns.

    Attributes:
        network: Its name.
        shares: How much each field decides of a setting's rank (functional ANOVA); empty for very few trials.
        rates: The lowest, the median and the highest learning rate of the ten best.
        relu: How many of the ten best are rectifier networks.
        count: How many the ten best are.
        gate_bias: The lowest, the median and the highest of the ten best; None for plain networks.
    """

    network: str
    shares: dict[str, float]
    rates: tuple[float, float, float]
    relu: int
    count: int
    gate_bias: tuple[float, float, float] | None


def influences(found: Sequence[Results], epochs: int) -> list[Influence]:
    """Of every network that has been trained; settings are ranked by the loss after the `epochs` that all had."""
    return [_influence(result, epochs) for result in found if best_trials(result)]


def _influence(result: Results, epochs: int) -> Influence:
    records = [
        TrialRecord(t.trial, t.status, None if math.isinf(value := t.best(epochs)) else value, settings=t.settings)
        for t in result.trials.values()
    ]
    best = [trial.settings for trial in best_trials(result)]
    biases = [float(settings["model.gate_bias"]) for settings in best if "model.gate_bias" in settings]
    return Influence(
        result.network.name,
        importance(records, result.network.space, maximise=False),
        _spread([float(settings["optim.lr"]) for settings in best]),
        sum(settings["model.activation"] == "relu" for settings in best),
        len(best),
        _spread(biases) if biases else None,
    )


def _spread(values: list[float]) -> tuple[float, float, float]:
    return min(values), median(values), max(values)
