"""Section 2.2: the guide to the gate bias of convolutional networks, -1, -2 and -3 for about 10, 20 and 30 layers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from verydeep.paper._verdict import Verdict, any_verdict
from verydeep.paper.claims._experiment import (
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

_GUIDE = {10: -1.0, 20: -2.0, 30: -3.0}  # layers, and the bias that the paper recommends
_BIASES, _QUICK_BIASES = (0.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0), (0.0, -1.0)
_RATE = 0.2
_SEEDS = (0, 1)
_NEAR = 1.25  # times the lowest loss

Losses = Mapping[float, float]


def _trainings(quick: bool) -> Sequence[ClaimTraining]:
    return [
        claim_training("three-epochs-conv", quick, {"depth": depth, "gate bias": bias}, _SEEDS, optim__lr=_RATE)
        for depth in (tuple(_GUIDE)[:1] if quick else _GUIDE)
        for bias in (_QUICK_BIASES if quick else _BIASES)
    ]


def guide_verdict(losses: Mapping[int, Losses]) -> Verdict:
    """Whether the recommended bias has a loss within a quarter of the lowest at every depth, or at some."""
    good = [each[_GUIDE[depth]] <= _NEAR * min(each.values()) for depth, each in losses.items()]
    return any_verdict(sum(good), len(good))


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    losses = loss_table(evidence.curves, "depth", "gate bias")
    best = {depth: min(each, key=lambda bias: each[bias]) for depth, each in losses.items()}
    texts = [
        f"{depth} layers: {format_loss(each[_GUIDE[depth]])} with {_GUIDE[depth]:g}, lowest "
        f"{format_loss(each[best[depth]])} with {best[depth]:g}"
        for depth, each in losses.items()
    ]
    return [Conclusion("loss at " + "; ".join(texts), guide_verdict(losses), {"loss": losses, "best_bias": best})]


def _draw(evidence: Evidence, path: Path) -> None:
    by_bias = {
        f"{depth} layers": list(each.items())
        for depth, each in loss_table(evidence.curves, "depth", "gate bias").items()
    }
    plot_claim_lines({"highway networks": by_bias}, path, x="initial gate bias", y="training loss", line=TRAINS_LINE)


CONV_BIAS = ClaimExperiment(
    "conv-bias",
    "the initial gate bias of convolutional networks",
    (
        PaperStatement(
            "2.2",
            "Gate biases of -1, -2 and -3 suit convolutional networks of about 10, 20 and 30 layers.",
            "Agrees if with the recommended bias the loss is at most a quarter above the lowest at every depth, "
            "differs in part if at some depths.",
        ),
    ),
    _conclude,
    _trainings,
    _draw,
    "convolutional highway networks of 10, 20 and 30 layers with 16, 32 and 64 maps, three epochs of 10,000 images of "
    "MNIST, gate biases from 0 to -6, two seeds",
)
