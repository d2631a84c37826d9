"""Section 3.3: thin maxout networks train by backpropagation alone only up to 5 layers, highway networks beyond."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

from verydeep.paper._verdict import Verdict
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

_NETWORKS = {5: "fitnet-a-5", 7: "fitnet-a-7", 9: "fitnet-a-9", 11: "fitnet-a"}
_HIGHWAY = "highway-a"  # of 11 layers
_RATES = (0.001, 0.003, 0.01, 0.05)
_LIMIT = 5  # layers, in the paper
_NEAR = 0.1  # of accuracy


def _trainings(quick: bool) -> Sequence[ClaimTraining]:
    return [
        claim_training("thin-conv", quick, {"network": network, "learning rate": rate})
        for network in ([_NETWORKS[5], _HIGHWAY] if quick else [*_NETWORKS.values(), _HIGHWAY])
        for rate in (_RATES[-1:] if quick else _RATES)
    ]


def thin_maxout_verdict(accuracies: Mapping[int, float], highway: float) -> Verdict:
    """Whether maxout networks train up to 5 layers and no deeper, or at least not all deeper ones.

    Args:
        accuracies: Those of maxout networks, by their number of layers.
        highway: That of the highway network.
    """
    trains = {depth: accuracy > highway - _NEAR for depth, accuracy in accuracies.items()}
    shallow = [each for depth, each in trains.items() if depth <= _LIMIT]
    deep = [each for depth, each in trains.items() if depth > _LIMIT]
    if not all(shallow) or all(deep):
        return "disagrees"
    return "differs in part" if any(deep) else "agrees"


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    found = {
        str(name): mean(c.accuracy for c in curves) for (name,), curves in by_label(evidence.curves, "network").items()
    }
    accuracies = {depth: found[name] for depth, name in _NETWORKS.items() if name in found}
    listed = ", ".join(f"{accuracy:.1%} ({depth} layers)" for depth, accuracy in accuracies.items())
    text = f"test accuracy of maxout {listed}; Highway A (11 layers) {found[_HIGHWAY]:.1%}"
    return [Conclusion(text, thin_maxout_verdict(accuracies, found[_HIGHWAY]), {"test_accuracy": found})]


def _draw(evidence: Evidence, path: Path) -> None:
    names = {network: f"maxout, {depth} layers" for depth, network in _NETWORKS.items()} | {
        _HIGHWAY: "Highway A, 11 layers"
    }
    lines = {
        names[str(name)]: list(enumerate(curves[0].losses, 1))
        for (name,), curves in by_label(evidence.curves, "network").items()
    }
    plot_claim_lines({"": lines}, path, x="epoch", y="training loss", line=(math.log(10), "a blind guess"))


THIN_MAXOUT = ClaimExperiment(
    "thin-maxout",
    "thin maxout networks of 5 to 11 layers by backpropagation alone",
    (
        PaperStatement(
            "3.3",
            "With 250K parameters and 30M multiplications, maxout networks can be trained by backpropagation alone "
            "only up to 5 layers.",
            "A network trains if its test accuracy is less than 10 points below that of Highway A, trained alike. "
            "Agrees if the maxout network of 5 layers trains and none of 7, 9 and 11 does, differs in part if not all "
            "of these do.",
            "The limit that the paper cites is that of whole trainings with RMSProp. In these first epochs, with He's "
            "initial weights, depth does no harm.",
        ),
    ),
    _conclude,
    _trainings,
    _draw,
    "maxout networks of 5, 7, 9 and 11 layers with 250K parameters and 30M multiplications, and Highway A; five "
    "epochs of 20,000 images of CIFAR-10 by stochastic gradient descent with a constant learning rate, the best of "
    "four",
)
