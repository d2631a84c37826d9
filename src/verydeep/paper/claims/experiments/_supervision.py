"""Section 5: deep supervision, losses on hidden layers, hurts thin deep networks."""

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

from verydeep.paper._verdict import Verdict, any_verdict
from verydeep.paper.claims._experiment import (
    ClaimExperiment,
    ClaimTraining,
    Conclusion,
    Evidence,
    PaperStatement,
    by_label,
    claim_training,
)
from verydeep.report import plot_claim_lines

_NAME = "supervision"
_NETWORKS = ("plain-mlp", "highway-mlp")
_RATES = (0.005, 0.05)
_EVERY = 10  # layers, between those with a loss of their own
_WITH, _WITHOUT = "companions", "alone"


def _trainings(quick: bool) -> Sequence[ClaimTraining]:
    depth = 20 if quick else 50
    layers = tuple(f"layer{number}" for number in range(_EVERY, depth, _EVERY))
    return [
        claim_training(
            "two-epochs",
            quick,
            {"network": network, "loss": loss, "learning rate": rate},
            (0,) if quick else (0, 1, 2),
            model__depth=depth,
            companion__hidden_layers=layers if loss == _WITH else (),
        )
        for network in _NETWORKS
        for loss in (_WITHOUT, _WITH)
        for rate in (_RATES[-1:] if quick else _RATES)
    ]


def supervision_verdict(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Verdict:
    """The verdict on accuracies per seed, without and with companion losses, of each kind of network."""
    return any_verdict(sum(_is_lower(after, before) for before, after in pairs), len(pairs))


def _is_lower(these: Sequence[float], those: Sequence[float]) -> bool:
    """Whether a mean is lower than another by more than two standard errors of their difference."""
    error = math.hypot(*(stdev(each) / math.sqrt(len(each)) if len(each) > 1 else 0.0 for each in (these, those)))
    return mean(those) - mean(these) > 2 * error


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    found = by_label(evidence.curves, "network", "loss")
    accuracies = {key: [curve.accuracy for curve in curves] for key, curves in found.items()}
    pairs = [(accuracies[network, _WITHOUT], accuracies[network, _WITH]) for network in _NETWORKS]
    texts = [
        f"{network.removesuffix('-mlp')}: {mean(without):.2%} without, {mean(with_):.2%} with"
        for network, (without, with_) in zip(_NETWORKS, pairs, strict=True)
    ]
    numbers = {" ".join(map(str, key)): values for key, values in accuracies.items()}
    return [Conclusion("test accuracy; " + "; ".join(texts), supervision_verdict(pairs), {"test_accuracy": numbers})]


def _draw(evidence: Evidence, path: Path) -> None:
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for (network, loss), curves in by_label(evidence.curves, "network", "loss").items():
        name = "with companion losses" if loss == _WITH else "without"
        epochs = enumerate(zip(*(curve.losses for curve in curves), strict=False), 1)
        lines = panels.setdefault(str(network).removesuffix("-mlp"), {})
        lines[name] = [(epoch, mean(losses)) for epoch, losses in epochs]
    plot_claim_lines(panels, path, x="epoch", y="training loss of the output")


SUPERVISION = ClaimExperiment(
    _NAME,
    "companion losses on hidden layers",
    (
        PaperStatement(
            "5",
            "Deep supervision hurts thin deep networks.",
            "Agrees if companion losses lower the test accuracy of plain and of highway networks by more than two "
            "standard errors over the seeds, differs in part if of one of them.",
            "The paper cites others for this, who trained thin convolutional networks to the end. Ours are fully "
            "connected and trained for two epochs, in which companion losses help both kinds.",
        ),
    ),
    _conclude,
    _trainings,
    _draw,
    "plain and highway networks of 50 layers with and without a loss on every tenth layer, two epochs of MNIST, three "
    "seeds, the better of two learning rates",
)
