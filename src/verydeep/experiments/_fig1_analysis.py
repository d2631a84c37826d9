"""How learning rate, gate bias and activation matter at each depth, and which gate bias that suggests."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from verydeep.experiments._fig1_results import Results
from verydeep.experiments._fig1_table import best_trials
from verydeep.search import Record, importance

_DEPTHS = (10, 20, 50, 100, 200, 500, 1000)


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
        Record(t.trial, t.status, None if math.isinf(value := t.best(epochs)) else value, settings=t.settings)
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


def recommended_gate_bias(found: Sequence[Results]) -> dict[int, float]:
    """A gate bias for 10 to 1000 layers: a line through the medians of the ten best over the logarithm of depth.

    Beyond the depths that were searched it is extrapolated. It stays between -10 and -1; empty while fewer than two
    depths have been trained.
    """
    points = []
    for result in found:
        biases = [float(t.settings["model.gate_bias"]) for t in best_trials(result) if "model.gate_bias" in t.settings]
        if biases:
            points.append((math.log(result.network.depth), median(biases)))
    if len(points) < 2:
        return {}
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    slope = sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)
    return {depth: max(-10.0, min(-1.0, round(y + slope * (math.log(depth) - x), 1))) for depth in _DEPTHS}


def _spread(values: list[float]) -> tuple[float, float, float]:
    return min(values), median(values), max(values)
