"""Section 3.1: what the plain networks of 20 layers lack in our Figure 1, settings or epochs."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from verydeep.paper._verdict import Verdict
from verydeep.paper.claims._experiment import (
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

_NAME = "longer"
_GOOD = 1e-4  # the paper's bound
_RATES, _DECAYS = (0.01, 0.02, 0.04), (0.97, 0.98, 0.99)
_FIRST, _EPOCHS = 100, 400  # epochs of Figure 1, and of this experiment


def _trainings(quick: bool) -> Sequence[ClaimTraining]:
    return [
        claim_training(
            "one-epoch", quick,
            {"network": "plain-mlp", "depth": 20, "learning rate": rate, "decay": decay},
            model__width=71, schedule__name="exponential", epochs=_EPOCHS,
        )
        for rate, decay in (product(_RATES[:1], _DECAYS[:1]) if quick else product(_RATES, _DECAYS))
    ]  # fmt: skip


def longer_verdict(first: float, last: float) -> Verdict:
    """Whether the loss is low enough after the epochs of Figure 1, or only after more of them."""
    return "agrees" if first < _GOOD else "differs in part" if last < _GOOD else "disagrees"


def _lowest(curves: Sequence[ClaimCurve], epochs: int) -> float:
    """The lowest loss of all within some epochs."""
    return min(min(curve.losses[:epochs]) for curve in curves if curve.losses)


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    first, last = (_lowest(evidence.curves, epochs) for epochs in (_FIRST, _EPOCHS))
    best = min(evidence.curves, key=lambda curve: _lowest([curve], _EPOCHS) if curve.losses else float("inf"))
    return [
        Conclusion(
            f"lowest loss of {len(evidence.curves)} settings {format_loss(first)} within {_FIRST} epochs, "
            f"{format_loss(last)} within {_EPOCHS}",
            longer_verdict(first, last),
            {"within_100_epochs": first, "within_400_epochs": last, "best": dict(best.labels)},
        )
    ]


def _draw(evidence: Evidence, path: Path) -> None:
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for curve in evidence.curves:
        lines = panels.setdefault(f"initial learning rate {curve.labels['learning rate']}", {})
        lines[f"decay {curve.labels['decay']}"] = list(enumerate(curve.losses, 1))
    plot_claim_lines(panels, path, x="epoch", y="training loss", line=(_GOOD, "1e-4"))


LONGER = ClaimExperiment(
    _NAME,
    "plain networks of 20 layers, trained for longer",
    (
        PaperStatement(
            "3.1",
            "Plain networks of 20 layers reach a loss below 1e-4: settings around the best of Figure 1, for longer.",
            f"Agrees if one of nine settings does within {_FIRST} epochs, differs in part if only within {_EPOCHS}.",
        ),
    ),
    _conclude,
    _trainings,
    _draw,
    f"plain networks of 20 layers, tanh, momentum 0.9, {_EPOCHS} epochs of MNIST, three initial learning rates and "
    "three decay factors around the best of Figure 1",
)
