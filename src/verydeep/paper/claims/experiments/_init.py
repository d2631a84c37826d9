"""Section 2.2: a negative gate bias is enough for many zero-mean initial distributions of the weights."""

from collections.abc import Sequence
from pathlib import Path

from verydeep.paper.claims._experiment import ClaimExperiment, ClaimTraining, Conclusion, Evidence, PaperStatement
from verydeep.paper.claims.experiments._variants import draw_variants, variant_trainings, variants_conclusion

_NAME = "init"
_INITS = ("glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "orthogonal", "sparse", "laplace")
_NORMALS = ("0.01", "0.03", "0.1", "0.3", "1.0")  # standard deviations


def _trainings(quick: bool) -> Sequence[ClaimTraining]:
    return variant_trainings(_NAME, ("glorot_normal", "orthogonal", "0.1") if quick else (*_INITS, *_NORMALS), quick)


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    return [variants_conclusion(evidence.curves, _NAME)]


def _draw(evidence: Evidence, path: Path) -> None:
    draw_variants(evidence.curves, _NAME, "initial distribution", path)


INIT = ClaimExperiment(
    _NAME,
    "initial distributions of the weights",
    (
        PaperStatement(
            "2.2",
            "A negative gate bias is enough for very deep networks to train with various zero-mean initial "
            "distributions of the weights.",
            "A highway network trains if its loss falls below half of that of a blind guess. Agrees if it does with "
            "every distribution at every depth, differs in part if in more than half of the cases.",
            "Only normal weights with a standard deviation of 1 fail; they saturate nearly every unit. Plain "
            "networks of 100 layers train with orthogonal weights only.",
        ),
    ),
    _conclude,
    _trainings,
    _draw,
    "highway and plain networks of 10, 50 and 100 layers, one epoch of MNIST, the better of two learning rates",
)
