"""Section 2.2: stochastic gradient descent does not stall beyond 1000 layers."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from verydeep.paper._verdict import Verdict, any_verdict
from verydeep.paper.claims._experiment import (
    TRAINS,
    TRAINS_LINE,
    ClaimCurve,
    ClaimExperiment,
    ClaimTraining,
    Conclusion,
    Evidence,
    PaperStatement,
    claim_training,
    format_loss,
)
from verydeep.report import plot_claim_lines

_NAME = "very-deep"
_DEPTHS = (1000, 2000, 5000, 10_000)
_SEEDS = (0, 1, 2)  # of the first


def _trainings(quick: bool) -> Sequence[ClaimTraining]:
    return [
        claim_training(
            "two-epochs", quick, {"network": "highway-mlp", "depth": depth},
            _SEEDS if depth == _DEPTHS[0] else (0,),
        )
        for depth in ((200,) if quick else _DEPTHS)
    ]  # fmt: skip


def very_deep_verdict(losses: Sequence[Sequence[float]]) -> Verdict:
    """The verdict on the losses per epoch of every network: each must start to learn and fall in every epoch."""
    good = [
        bool(each) and each[-1] < TRAINS and all(before > after for before, after in pairwise(each)) for each in losses
    ]
    return any_verdict(sum(good), len(good))


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    curves = sorted(evidence.curves, key=lambda curve: (int(curve.labels["depth"]), curve.seed))
    texts = []
    for depth in dict.fromkeys(int(curve.labels["depth"]) for curve in curves):
        found = [curve for curve in curves if curve.labels["depth"] == depth]
        losses = ", ".join(format_loss(curve.loss) for curve in found)
        texts.append(f"{depth}: {losses}")
    return [
        Conclusion(
            f"loss after {max(len(curve.metrics) for curve in curves)} epochs by number of layers; " + "; ".join(texts),
            very_deep_verdict([curve.losses for curve in curves]),
            {_label(curve): {"loss": curve.losses, "seconds_per_layer": _layer_seconds(curve)} for curve in curves},
        )
    ]


def _label(curve: ClaimCurve) -> str:
    return f"{curve.labels['depth']} layers, seed {curve.seed}"


def _layer_seconds(curve: ClaimCurve) -> float | None:
    """Seconds per layer and epoch."""
    last = curve.metrics[-1] if curve.metrics else None
    return None if last is None else last.seconds / last.epoch / float(curve.labels["depth"])


def _draw(evidence: Evidence, path: Path) -> None:
    lines = {_label(curve): list(enumerate(curve.losses, 1)) for curve in evidence.curves}
    plot_claim_lines({"highway networks": lines}, path, x="epoch", y="training loss", line=TRAINS_LINE)


VERY_DEEP = ClaimExperiment(
    _NAME,
    "highway networks of 1000 layers and more",
    (
        PaperStatement(
            "2.2",
            "Gradient descent does not stall for networks with more than 1000 layers.",
            "Agrees if in every network the loss falls in every epoch and ends below half of a blind guess's, differs "
            "in part if in some of them.",
        ),
    ),
    _conclude,
    _trainings,
    _draw,
    "highway networks of 1000 (three seeds), 2000, 5000 and 10,000 layers, two epochs of MNIST",
)
