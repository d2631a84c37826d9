"""Section 3.1: what Figure 1 shows, from the 800 trainings behind our own figure."""

from collections.abc import Sequence

from verydeep.paper.claims._experiment import (
    ClaimExperiment,
    Conclusion,
    Evidence,
    PaperStatement,
    Verdict,
    share_verdict,
)
from verydeep.paper.fig1._claims import PaperClaim, fig1_claims
from verydeep.paper.fig1._summary import LEARNT, Fig1Row, read_fig1

_VERY_GOOD = 1e-4  # the paper's bound for plain networks of 10 and 20 layers


def shallow_verdict(losses: Sequence[float]) -> Verdict:
    """The verdict on the losses of plain networks of 10 and 20 layers."""
    good = sum(loss < _VERY_GOOD for loss in losses)
    return "agrees" if good == len(losses) else "differs in part" if good else "disagrees"


def faster_verdict(pairs: Sequence[tuple[int | None, int | None]]) -> Verdict:
    """The verdict on epochs until a network has learnt, of highway and plain networks by depth; None is never."""
    return share_verdict(sum(_is_faster(*pair) for pair in pairs), len(pairs))


def _is_faster(highway: int | None, plain: int | None) -> bool:
    return highway is not None and (plain is None or highway < plain)


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    folder = evidence.results / "fig1"
    if not folder.is_dir():
        return [Conclusion()] * len(OPTIMISATION.statements)
    rows = read_fig1(folder)
    shallow, degrade, deep, hundredfold, faster = fig1_claims(rows)
    return [
        _conclusion(shallow, shallow_verdict(_best(rows[0:4:2])) if shallow.holds is not None else None),
        _conclusion(degrade),
        _conclusion(deep),
        _conclusion(hundredfold),
        _conclusion(faster, faster_verdict(_pairs(rows)) if faster.holds is not None else None),
    ]


def _conclusion(claim: PaperClaim, verdict: Verdict | None = None) -> Conclusion:
    if claim.holds is None:
        return Conclusion()
    return Conclusion(claim.measured, verdict or ("agrees" if claim.holds else "disagrees"), {"holds": claim.holds})


def _best(rows: Sequence[Fig1Row]) -> list[float]:
    return [row.best for row in rows if row.best is not None]


def _pairs(rows: Sequence[Fig1Row]) -> list[tuple[int | None, int | None]]:
    return [(highway.learnt_after, plain.learnt_after) for plain, highway in zip(rows[::2], rows[1::2], strict=True)]


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
