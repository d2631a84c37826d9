"""Sections 1 and 5: local competition helps to train deeper plain networks, but not beyond about 20 layers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from verydeep.paper._verdict import Verdict, any_verdict, share_verdict
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

_NAME = "competition"
_COMPETITIVE, _OTHERS = ("maxout", "lwta"), ("tanh", "relu")
_DEPTHS, _QUICK_DEPTHS = (5, 10, 20, 30, 50, 100), (5, 25)
_RATES = (0.005, 0.05)
_LIMIT = 20  # layers, in the paper
_WORSE = 2.0  # times the loss

Losses = Mapping[int, float]


def _trainings(quick: bool) -> Sequence[ClaimTraining]:
    return [
        claim_training(
            "one-epoch",
            quick,
            {"network": "plain-mlp", "depth": depth, "activation": activation, "learning rate": rate},
            model__width=72,  # lwta needs pairs
        )
        for depth in (_QUICK_DEPTHS if quick else _DEPTHS)
        for activation in (*_COMPETITIVE, *_OTHERS)
        for rate in (_RATES[-1:] if quick else _RATES)
    ]


def deepest_trained(losses: Losses) -> int:
    """The greatest depth up to which all networks train; 0 if the shallowest does not."""
    deepest = 0
    for depth, loss in sorted(losses.items()):
        if loss >= TRAINS:
            break
        deepest = depth
    return deepest


def deeper_verdict(competitive: Sequence[int], others: Sequence[int]) -> Verdict:
    """Whether networks with competition train up to a greater depth than those without."""
    return any_verdict(sum(depth > max(others) for depth in competitive), len(competitive))


def limit_verdict(losses: Sequence[Losses]) -> Verdict:
    """Whether networks with competition do not train beyond about 20 layers, or have at least twice the loss."""
    suffers = []
    for each in losses:
        shallow = min(loss for depth, loss in each.items() if depth <= _LIMIT)
        suffers += [loss >= min(TRAINS, _WORSE * shallow) for depth, loss in each.items() if depth > _LIMIT]
    return share_verdict(sum(suffers), len(suffers))


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    losses = loss_table(evidence.curves, "activation", "depth")
    deepest = {name: deepest_trained(each) for name, each in losses.items()}
    listed = "; ".join(
        f"{name}: " + ", ".join(format_loss(loss) for loss in losses[name].values()) for name in _COMPETITIVE
    )
    return [
        Conclusion(
            "trained up to " + ", ".join(f"{depth} layers ({name})" for name, depth in deepest.items()),
            deeper_verdict([deepest[name] for name in _COMPETITIVE], [deepest[name] for name in _OTHERS]),
            {"deepest": deepest},
        ),
        Conclusion(
            f"loss at {', '.join(map(str, losses[_COMPETITIVE[0]]))} layers: {listed}",
            limit_verdict([losses[name] for name in _COMPETITIVE]),
            {"loss": losses},
        ),
    ]


def _draw(evidence: Evidence, path: Path) -> None:
    lines = {name: list(losses.items()) for name, losses in loss_table(evidence.curves, "activation", "depth").items()}
    plot_claim_lines(
        {"plain networks": lines}, path, x="hidden layers", y="training loss", line=TRAINS_LINE, log_x=True
    )


COMPETITION = ClaimExperiment(
    _NAME,
    "local competition in plain networks",
    (
        PaperStatement(
            "1",
            "Activation functions of local competition help to train deeper networks.",
            "Plain networks train up to a depth if all up to it have a loss below half of a blind guess's. Agrees if "
            "this depth is greater for maxout and for LWTA than for tanh and relu, differs in part for one of them.",
            "The paper cites others for this. With normalised initial weights and one epoch, it is tanh that trains "
            "deepest; longer training is not measured.",
        ),
        PaperStatement(
            "5",
            "Networks of units that compete locally still suffer beyond about 20 layers.",
            "Agrees if every network of maxout or LWTA beyond 20 layers has at least twice the loss of the best of up "
            "to 20 layers, or does not train; differs in part if more than half of them do.",
        ),
    ),
    _conclude,
    _trainings,
    _draw,
    "plain networks of 5 to 100 layers, one epoch of MNIST, the better of two learning rates",
)
