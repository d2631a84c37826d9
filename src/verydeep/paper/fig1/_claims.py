"""The paper's claims about Figure 1, checked against our results."""

from collections.abc import Sequence
from dataclasses import dataclass

from verydeep.paper._verdict import Verdict, any_verdict, share_verdict
from verydeep.paper.fig1._protocol import DEPTHS
from verydeep.paper.fig1._summary import LEARNT, Fig1Row, loss_ratio

_VERY_GOOD = 1e-4  # the paper's bound for plain networks of 10 and 20 layers
_SIMILAR = 10.0  # a factor between losses that span five orders of magnitude
_BETTER = 100.0


@dataclass(frozen=True)
class PaperClaim:
    """One claim of the paper.

    Attributes:
        paper: What the paper says.
        measured: What we measured.
        verdict: Whether the two agree; None while networks are missing.
    """

    paper: str
    measured: str = "not yet run"
    verdict: Verdict | None = None


def fig1_claims(rows: Sequence[Fig1Row]) -> list[PaperClaim]:
    """Check each claim against the losses of the best settings."""
    trained = {row.network: row for row in rows if row.best is not None}
    plain, highway = ([trained.get(f"{family}-{depth}") for depth in DEPTHS] for family in ("plain", "highway"))
    return [_shallow(plain[:2]), _degrade(plain), _deep(highway), _hundredfold(rows), _faster(plain, highway)]


def _shallow(rows: Sequence[Fig1Row | None]) -> PaperClaim:
    paper, losses = "plain networks of 10 and 20 layers reach a loss below 1e-4", _losses(rows)
    if losses is None:
        return PaperClaim(paper)
    return PaperClaim(paper, _listed(losses), shallow_verdict(losses))


def shallow_verdict(losses: Sequence[float]) -> Verdict:
    """The verdict on the losses of plain networks of 10 and 20 layers."""
    return any_verdict(sum(loss < _VERY_GOOD for loss in losses), len(losses))


def _degrade(rows: Sequence[Fig1Row | None]) -> PaperClaim:
    paper, losses = "the loss of plain networks grows significantly with depth", _losses(rows)
    if losses is None:
        return PaperClaim(paper)
    return PaperClaim(paper, _listed(losses), _holds(losses == sorted(losses) and losses[-1] > _SIMILAR * losses[0]))


def _deep(rows: Sequence[Fig1Row | None]) -> PaperClaim:
    paper = f"highways of 50 and 100 layers do as well as those of 10 and 20 (here: within a factor of {_SIMILAR:g})"
    losses = _losses(rows)
    if losses is None:
        return PaperClaim(paper)
    return PaperClaim(paper, _listed(losses), _holds(max(losses[2:]) <= _SIMILAR * max(losses[:2])))


def _hundredfold(rows: Sequence[Fig1Row]) -> PaperClaim:
    paper = "at 100 layers, the highway's loss is more than 100 times lower than the plain network's"
    times = loss_ratio(rows)
    return PaperClaim(paper) if times is None else PaperClaim(paper, f"{times:,.0f} times", _holds(times > _BETTER))


def _faster(plain: Sequence[Fig1Row | None], highway: Sequence[Fig1Row | None]) -> PaperClaim:
    paper = f"highways converge faster at every depth (here: epochs to a loss below {LEARNT:g})"
    if _losses([*plain, *highway]) is None:
        return PaperClaim(paper)
    theirs, ours = ([row.learnt_after if row else None for row in rows] for rows in (plain, highway))
    pairs = list(zip(ours, theirs, strict=True))
    text = "; ".join(
        f"{depth} layers: {fast or 'never'}, plain {slow or 'never'}"
        for depth, (fast, slow) in zip(DEPTHS, pairs, strict=True)
    )
    return PaperClaim(paper, text, faster_verdict(pairs))


def faster_verdict(pairs: Sequence[tuple[int | None, int | None]]) -> Verdict:
    """The verdict on epochs until a network has learnt, of highway and plain networks by depth; None is never."""
    faster = [fast is not None and (slow is None or fast < slow) for fast, slow in pairs]
    return share_verdict(sum(faster), len(faster))


def _holds(agrees: bool) -> Verdict:
    return "agrees" if agrees else "disagrees"


def _losses(rows: Sequence[Fig1Row | None]) -> list[float] | None:
    """The best loss of each network; None unless every network has one."""
    losses = [row.best for row in rows if row is not None and row.best is not None]
    return losses if len(losses) == len(rows) else None


def _listed(losses: Sequence[float]) -> str:
    return ", ".join(f"{loss:.2g}" for loss in losses)
