"""Section 2: forms of highway layers that the paper mentions but reports no result of."""

from collections.abc import Mapping, Sequence
from statistics import mean

from verydeep.paper._verdict import Verdict, any_verdict
from verydeep.paper.claims._experiment import (
    TRAINS,
    ClaimExperiment,
    ClaimTraining,
    Conclusion,
    Evidence,
    PaperStatement,
    by_label,
    claim_training,
)

_NAME = "forms"
_DEPTH, _QUICK_DEPTH = 20, 10
_RATES = (0.05, 0.2)
_FORMS = {  # the network, and how its carry gate is formed
    "coupled": ("highway-mlp", "coupled"),
    "independent": ("highway-mlp", "independent"),
    "lstm": ("lstm-highway", None),
    "recurrent": ("recurrent-highway", None),
}
_STEP_DEPTH = 3  # layers per time step of the recurrent network


def _trainings(quick: bool) -> Sequence[ClaimTraining]:
    depth = _QUICK_DEPTH if quick else _DEPTH
    return [
        claim_training(
            "one-epoch",
            quick,
            {"form": form, "learning rate": rate},
            (0,) if quick else (0, 1, 2),
            model__name=network,
            model__depth=_STEP_DEPTH if network == "recurrent-highway" else depth,
            model__carry=carry,
        )
        for form, (network, carry) in _FORMS.items()
        for rate in (_RATES[-1:] if quick else _RATES)
    ]


def forms_verdict(losses: Mapping[str, Sequence[float]]) -> Verdict:
    """Whether every seed of every form has started to learn."""
    return any_verdict(sum(max(each) < TRAINS for each in losses.values()), len(losses))


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    found = {str(form): curves for (form,), curves in by_label(evidence.curves, "form").items()}
    losses = {form: [curve.loss for curve in curves] for form, curves in found.items()}
    accuracy = {form: [curve.accuracy for curve in curves] for form, curves in found.items()}
    return [
        Conclusion(
            "test accuracy after one epoch: "
            + ", ".join(f"{mean(each):.1%} ({form})" for form, each in accuracy.items()),
            forms_verdict(losses),
            {"loss": losses, "test_accuracy": accuracy},
        )
    ]


FORMS = ClaimExperiment(
    _NAME,
    "other forms of highway layers",
    (
        PaperStatement(
            "2",
            "A layer may have an independent carry gate, an LSTM-like block or a recurrent block state.",
            "Agrees if with every form every seed reaches a loss below half of a blind guess's, differs in part if "
            "with some forms.",
        ),
    ),
    _conclude,
    _trainings,
    protocol=f"{_DEPTH} layers, or {_STEP_DEPTH} per row of an image that the recurrent network reads, one epoch of "
    "MNIST, three seeds, the better of two learning rates",
)
