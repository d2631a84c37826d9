"""Section 2.2: gates that start closed are what lets deep networks train."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from verydeep.paper._verdict import Verdict, any_verdict
from verydeep.paper.claims._experiment import (
    TRAINS,
    TRAINS_LINE,
    ClaimExperiment,
    ClaimTraining,
    Conclusion,
    Evidence,
    PaperStatement,
    claim_training,
    format_loss,
    loss_table,
)
from verydeep.report import plot_claim_lines

_NAME = "gate-bias"
_DEPTHS, _QUICK_DEPTHS = (10, 30, 100, 300, 1000), (10, 100)
_BIASES, _QUICK_BIASES = (0.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -8.0), (0.0, -4.0)

Losses = Mapping[float, float]


def _trainings(quick: bool) -> Sequence[ClaimTraining]:
    return [
        claim_training("one-epoch", quick, {"network": "highway-mlp", "depth": depth, "gate bias": bias})
        for depth in (_QUICK_DEPTHS if quick else _DEPTHS)
        for bias in (_QUICK_BIASES if quick else _BIASES)
    ]


def gate_bias_verdict(losses: Mapping[int, Losses]) -> Verdict:
    """The verdict on the loss by depth and gate bias: a negative bias must train, and do better than none."""
    good = []
    for each in losses.values():
        best = min(loss for bias, loss in each.items() if bias < 0)
        good.append(best < TRAINS and best < each[0.0])
    return any_verdict(sum(good), len(good))


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    losses = loss_table(evidence.curves, "depth", "gate bias")
    best = {depth: min(each, key=lambda bias: each[bias]) for depth, each in losses.items()}
    texts = [
        f"{depth} layers: {losses[depth][bias]:.2g} with {bias:g}, {format_loss(losses[depth][0.0])} with 0"
        for depth, bias in best.items()
    ]
    opened = {depth: depth / (1 + math.exp(-bias)) for depth, bias in best.items()}
    return [
        Conclusion(
            "lowest loss at " + "; ".join(texts),
            gate_bias_verdict(losses),
            {"loss": losses, "best_bias": best, "open_layers_of_best": opened},
        )
    ]


def _draw(evidence: Evidence, path: Path) -> None:
    losses = loss_table(evidence.curves, "depth", "gate bias")
    by_bias = {f"{depth} layers": list(each.items()) for depth, each in losses.items()}
    plot_claim_lines({"highway networks": by_bias}, path, x="initial gate bias", y="training loss", line=TRAINS_LINE)


GATE_BIAS = ClaimExperiment(
    _NAME,
    "the initial gate bias",
    (
        PaperStatement(
            "2.2",
            "Gates that are initially biased towards carrying let very deep networks train.",
            "Agrees if at every depth the best negative bias has a lower loss than a bias of 0 and one below half of a "
            "blind guess's, differs in part if at some depths.",
        ),
    ),
    _conclude,
    _trainings,
    _draw,
    "fully connected highway networks of 10 to 1000 layers, one epoch of MNIST, gate biases from 0 to -8",
)
