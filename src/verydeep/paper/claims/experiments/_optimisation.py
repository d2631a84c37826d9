"""Section 3.1: what Figure 1 shows, from the 800 trainings behind our own figure."""

from collections.abc import Sequence

from verydeep.paper.claims._experiment import ClaimExperiment, Conclusion, Evidence, PaperStatement
from verydeep.paper.fig1._claims import fig1_claims
from verydeep.paper.fig1._summary import LEARNT, read_fig1


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    folder = evidence.results / "fig1"
    if not folder.is_dir():
        return [Conclusion()] * len(OPTIMISATION.statements)
    claims = fig1_claims(read_fig1(folder))
    return [Conclusion(claim.measured, claim.verdict) if claim.verdict else Conclusion() for claim in claims]


OPTIMISATION = ClaimExperiment(
    "optimisation",
    "Figure 1: the best of 100 settings per network",
    (
        PaperStatement(
            "3.1",
            "Plain networks of 10 and 20 layers reach a loss below 1e-4.",
            "Agrees if the best settings of both do, differs in part if that of one does.",
            "One hundred random settings need not hold a good one, and the paper does not publish the ranges that it "
            "searched.",
        ),
        PaperStatement(
            "3.1",
            "The loss of plain networks grows significantly with depth.",
            "Agrees if the loss of the best setting grows with every step in depth, and more than tenfold in all.",
        ),
        PaperStatement(
            "3.1",
            "Highway networks of 50 and 100 layers do as well as those of 10 and 20.",
            "Agrees if the worse of the deep two has at most ten times the loss of the worse of the shallow two.",
        ),
        PaperStatement(
            "3.1",
            "At 100 layers the loss of the highway network is more than 100 times lower than the plain network's.",
            "Agrees if it is, with the best settings.",
        ),
        PaperStatement(
            "3.1",
            "The best highway networks converge faster than the best plain ones.",
            f"Agrees if they need fewer epochs to a loss below {LEARNT:g} at every depth, differs in part if at more "
            "than half of the depths.",
        ),
    ),
    _conclude,
    protocol="the numbers are those of `verydeep reproduce fig1`",
)
