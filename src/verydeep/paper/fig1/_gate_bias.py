"""Which gate bias suits which depth: what counts is how many layers are open at the start, depth * sigmoid(bias)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from verydeep.paper.fig1._trials import Results

DEPTHS = (10, 20, 50, 100, 200, 500, 1000)
_BOUNDS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, math.inf)
_ENOUGH = 20  # settings, before a share means anything
_CHANCE = 1 / 3


@dataclass(frozen=True)
class OpenLayers:
    """The settings of highways that start with about as many open layers.

    Attributes:
        low: At least so many, on average.
        high: Fewer than these.
        good: By depth, how many of the settings came out among the best third of their network.
        settings: By depth, how many there are.
    """

    low: float
    high: float
    good: dict[int, int]
    settings: dict[int, int]

    @property
    def share(self) -> float:
        """Of all depths together, how many came out among the best third; a third would be chance."""
        return sum(self.good.values()) / max(1, sum(self.settings.values()))


def gate_biases(found: Sequence[Results], epochs: int) -> dict[int, list[tuple[float, float]]]:
    """By depth, gate bias and loss after so many epochs of all settings of highways that learnt, the best first."""
    return {
        result.network.depth: [(bias, loss) for bias, loss in _ranked(result, epochs) if math.isfinite(loss)]
        for result in found
        if result.network.family == "highway" and result.trials
    }


def open_layers(found: Sequence[Results], epochs: int) -> list[OpenLayers]:
    """Settings by how open they start; the best third is that of the loss after the `epochs` that all had."""
    networks = {result.network.depth: _ranked(result, epochs) for result in found if result.network.family == "highway"}
    rows = []
    for low, high in pairwise(_BOUNDS):
        row = OpenLayers(low, high, {}, {})
        for depth, ranked in networks.items():
            inside = [low <= depth / (1 + math.exp(-bias)) < high for bias, _ in ranked]
            row.good[depth], row.settings[depth] = sum(inside[: len(inside) // 3]), sum(inside)
        rows.append(row)
    return rows


def recommended_gate_bias(rows: Sequence[OpenLayers]) -> dict[int, tuple[float, float]]:
    """By depth, between which gate biases settings do well: better than chance; empty while little was trained.

    These are the best row and its neighbours as far as they reach. That the number of open layers counts, whatever the
    depth, is what the study can show for its own depths; beyond them it is a guess. The bias stays between -10 and -1,
    as in the search.
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


def _ranked(result: Results, epochs: int) -> list[tuple[float, float]]:
    """Gate bias and loss of all settings, the best setting first."""
    ranked = sorted(result.trials.values(), key=lambda trial: (trial.best(epochs), trial.trial))
    return [(float(trial.settings["model.gate_bias"]), trial.best(epochs)) for trial in ranked]


def _gate_bias(depth: int, layers: float) -> float:
    """With which so many layers of a network are open."""
    if not 0 < layers < depth:
        return -10.0 if layers <= 0 else -1.0
    return max(-10.0, min(-1.0, -math.log(depth / layers - 1)))
