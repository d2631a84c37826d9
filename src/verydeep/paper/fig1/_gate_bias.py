"""Which gate bias suits which depth: what matters is how many layers start open, depth * sigmoid(bias)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from verydeep.paper.fig1._results import Fig1Results

DEPTHS = (10, 20, 50, 100, 200, 500, 1000)
_BOUNDS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, math.inf)
_ENOUGH = 20  # settings, for a fraction to mean anything
_CHANCE = 1 / 3


@dataclass(frozen=True)
class OpenLayers:
    """The settings of highways whose number of open layers at the start lies in an interval.

    Attributes:
        low: Lower end of the interval, included.
        high: Upper end of the interval, excluded.
        good: By depth, how many of the settings ended among the best third of their network.
        settings: By depth, how many settings there are.
    """

    low: float
    high: float
    good: dict[int, int]
    settings: dict[int, int]

    @property
    def share(self) -> float:
        """Fraction of the settings of all depths that ended among the best third; chance would give a third."""
        return sum(self.good.values()) / max(1, sum(self.settings.values()))

    @property
    def interval(self) -> str:
        """The interval in words."""
        if self.low == 0:
            return f"below {self.high:g}"
        return f"{self.low:g} to {self.high:g}" if math.isfinite(self.high) else f"{self.low:g} and more"


def gate_biases(results: Sequence[Fig1Results], epochs: int) -> dict[int, list[tuple[float, float]]]:
    """By depth, gate bias and loss after `epochs` of all highway settings that did not diverge, best first."""
    return {
        result.network.depth: [(bias, loss) for bias, loss in _ranked(result, epochs) if math.isfinite(loss)]
        for result in results
        if result.network.family == "highway" and result.trials
    }


def open_layers(results: Sequence[Fig1Results], epochs: int) -> list[OpenLayers]:
    """Group settings by how many layers start open; the best third is that after the `epochs` all were trained."""
    highways = [result for result in results if result.network.family == "highway"]
    networks = {result.network.depth: _ranked(result, epochs) for result in highways}
    rows = []
    for low, high in pairwise(_BOUNDS):
        row = OpenLayers(low, high, {}, {})
        for depth, ranked in networks.items():
            inside = [low <= depth / (1 + math.exp(-bias)) < high for bias, _ in ranked]
            row.good[depth], row.settings[depth] = sum(inside[: len(inside) // 3]), sum(inside)
        rows.append(row)
    return rows


def recommended_gate_bias(rows: Sequence[OpenLayers]) -> dict[int, tuple[float, float]]:
    """By depth, the interval of gate biases that do better than chance; empty while too little is trained.

    The interval covers the best row and the adjacent rows that are better than chance. The study shows only for its own
    depths that the number of open layers is what matters; beyond them it is an extrapolation. The bias stays between
    -10 and -1, as in the search.
    """
    shares = [row.share if sum(row.settings.values()) >= _ENOUGH else 0.0 for row in rows]
    if not any(shares):
        return {}
    first = last = shares.index(max(shares))
    while first > 0 and shares[first - 1] >= _CHANCE:
        first -= 1
    while last + 1 < len(rows) and shares[last + 1] >= _CHANCE:
        last += 1
    return {depth: (_gate_bias(depth, rows[first].low), _gate_bias(depth, rows[last].high)) for depth in DEPTHS}


def _ranked(result: Fig1Results, epochs: int) -> list[tuple[float, float]]:
    """Gate bias and loss of all settings, best first."""
    ranked = sorted(result.trials.values(), key=lambda trial: (trial.best(epochs), trial.trial))
    return [(float(trial.settings["model.gate_bias"]), trial.best(epochs)) for trial in ranked]


def _gate_bias(depth: int, layers: float) -> float:
    """The gate bias at which a network of some depth has this many layers open."""
    if not 0 < layers < depth:
        return -10.0 if layers <= 0 else -1.0
    return max(-10.0, min(-1.0, -math.log(depth / layers - 1)))
