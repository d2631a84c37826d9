"""How much learning rate, gate bias and activation matter at each depth."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from verydeep.paper.fig1._results import Fig1Results
from verydeep.paper.fig1._summary import best_trials
from verydeep.search import importance
from verydeep.studies import TrainingRecord


@dataclass(frozen=True)
class Influence:
    """Which settings determine how well a network learns.

    Attributes:
        network: Its name.
        shares: Share of the variance of ranks that each field explains (functional ANOVA); empty for very few trials.
        rates: The lowest, median and highest learning rate of the ten best trials.
        relu: How many of the ten best use ReLU.
        count: How many trials the "ten best" are; fewer while the study is under way.
        gate_bias: The lowest, median and highest gate bias of the ten best; None for plain networks.
    """

    network: str
    shares: dict[str, float]
    rates: tuple[float, float, float]
    relu: int
    count: int
    gate_bias: tuple[float, float, float] | None


def influences(results: Sequence[Fig1Results], epochs: int) -> list[Influence]:
    """Analyse every network with trials; settings are ranked by their loss after the `epochs` all were trained."""
    return [_influence(result, epochs) for result in results if best_trials(result)]


def _influence(result: Fig1Results, epochs: int) -> Influence:
    records = [
        TrainingRecord(t.trial, t.status, None if math.isinf(value := t.best(epochs)) else value, settings=t.settings)
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
