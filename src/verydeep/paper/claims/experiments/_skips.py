"""Section 5: gates, which answer to the input, against skip connections, which are fixed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

from verydeep.paper._verdict import Verdict, any_verdict
from verydeep.paper.claims._experiment import (
    ClaimExperiment,
    ClaimTraining,
    Conclusion,
    Evidence,
    PaperStatement,
    by_label,
    claim_training,
    format_loss,
)
from verydeep.report import plot_claim_lines

_NAME = "skips"
_NETWORKS = ("highway-mlp", "residual-mlp", "plain-mlp")
_DEPTHS, _QUICK_DEPTHS = (10, 50, 200), (10, 50)
_RATES = (0.005, 0.05, 0.2)

Losses = Mapping[int, Sequence[float]]  # per seed, by depth


def _trainings(quick: bool) -> Sequence[ClaimTraining]:
    return [
        claim_training(
            "one-epoch", quick, {"network": network, "depth": depth, "learning rate": rate}, (0,) if quick else (0, 1)
        )
        for depth in (_QUICK_DEPTHS if quick else _DEPTHS)
        for network in _NETWORKS
        for rate in (_RATES[1:2] if quick else _RATES)
    ]


def skips_verdict(highway: Losses, residual: Losses) -> Verdict:
    """Whether every seed of the highway networks has a lower loss than every seed of the residual ones, by depth."""
    return any_verdict(sum(max(highway[depth]) < min(residual[depth]) for depth in highway), len(highway))


def _losses(evidence: Evidence) -> dict[str, dict[int, list[float]]]:
    found: dict[str, dict[int, list[float]]] = {}
    for (network, depth), curves in by_label(evidence.curves, "network", "depth").items():
        name = str(network).removesuffix("-mlp")
        found.setdefault(name, {})[int(depth)] = [curve.loss for curve in curves]
    return found


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    losses = _losses(evidence)
    texts = [
        f"{name}: " + ", ".join(format_loss(mean(each)) for each in found.values()) for name, found in losses.items()
    ]
    depths = ", ".join(map(str, losses["highway"]))
    return [
        Conclusion(
            f"loss at {depths} layers; " + "; ".join(texts),
            skips_verdict(losses["highway"], losses["residual"]),
            {"loss": losses},
        )
    ]


def _draw(evidence: Evidence, path: Path) -> None:
    lines = {name: [(depth, mean(each)) for depth, each in found.items()] for name, found in _losses(evidence).items()}
    plot_claim_lines({"": lines}, path, x="hidden layers", y="training loss", log_x=True)


SKIPS = ClaimExperiment(
    _NAME,
    "gates and fixed skip connections",
    (
        PaperStatement(
            "5",
            "Gates, which respond to the input, help where fixed skip connections do not.",
            "Agrees if at every depth every seed of the highway networks has a lower loss than every seed of the "
            "residual ones of as many parameters, differs in part if at some depths.",
        ),
    ),
    _conclude,
    _trainings,
    _draw,
    "highway, residual and plain networks of 10, 50 and 200 layers, one epoch of MNIST, two seeds, the best of three "
    "learning rates",
)
