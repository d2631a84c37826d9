"""Sections 2.2 and 5: highway networks train with many activation functions of the block state."""

from collections.abc import Sequence
from pathlib import Path

from verydeep.paper.claims._experiment import ClaimExperiment, ClaimTraining, Conclusion, Evidence, PaperStatement
from verydeep.paper.claims.experiments._variants import draw_variants, variant_trainings, variants_conclusion

_NAME = "activation"
_ACTIVATIONS = ("tanh", "relu", "sigmoid", "elu", "gelu", "softplus", "identity", "maxout", "lwta")


def _trainings(quick: bool) -> Sequence[ClaimTraining]:
    return variant_trainings(_NAME, ("tanh", "gelu", "maxout") if quick else _ACTIVATIONS, quick)


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    return [variants_conclusion(evidence.curves, _NAME)]


def _draw(evidence: Evidence, path: Path) -> None:
    draw_variants(evidence.curves, _NAME, "activation", path)


ACTIVATION = ClaimExperiment(
    _NAME,
    "activation functions of the block state",
    (
        PaperStatement(
            "2.2, 5",
            "A negative gate bias is enough for very deep networks to train with different activation functions; they "
            "do not rely on a specific one.",
            "A highway network trains if its loss falls below half of that of a blind guess. Agrees if it does with "
            "every activation at every depth, differs in part if in more than half of the cases.",
        ),
    ),
    _conclude,
    _trainings,
    _draw,
    "highway and plain networks of 10, 50 and 100 layers, one epoch of MNIST, the better of two learning rates",
)
