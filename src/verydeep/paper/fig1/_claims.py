"""What the paper says of Figure 1, and what was found."""

from collections.abc import Sequence
from dataclasses import dataclass

from verydeep.paper.fig1._protocol import DEPTHS
from verydeep.paper.fig1._summary import LEARNT, Row, ratio

_VERY_GOOD = 1e-4  # the paper's word for plain networks of 10 and 20 layers
_SIMILAR = 10.0  # a factor between losses that run over five orders of magnitude
_BETTER = 100.0


@dataclass(frozen=True)
class Claim:
    """One statement of the paper.

    Attributes:
        paper: What it says.
        found: What was measured.
        holds: Whether that agrees; None while networks are missing.
    """

    paper: str
    found: str = "not yet run"
    holds: bool | None = None


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Each statement beside the measured losses of the best settings."""
    found = {row.network: row for row in rows if row.best is not None}
    plain, highway = ([found.get(f"{family}-{depth}") for depth in DEPTHS] for family in ("plain", "highway"))
    return [_shallow(plain[:2]), _degrade(plain), _deep(highway), _hundredfold(rows), _faster(plain, highway)]


def claim_lines(rows: Sequence[Row], epochs_left: int = 0) -> list[str]:
    """The statements as a table, in Markdown; of a study under way they may yet change."""
    verdicts = {None: "", True: "yes", False: "no"}
    agrees = "agrees so far" if epochs_left else "agrees"
    lines = [f"| the paper | found, at the best setting | {agrees} |", "|---|---|---|"]
    return lines + [f"| {each.paper} | {each.found} | {verdicts[each.holds]} |" for each in claims(rows)]


def _shallow(rows: Sequence[Row | None]) -> Claim:
    paper, losses = "plain networks of 10 and 20 layers reach a loss below 1e-4", _losses(rows)
    if losses is None:
        return Claim(paper)
    return Claim(paper, _listed(losses), max(losses) < _VERY_GOOD)


def _degrade(rows: Sequence[Row | None]) -> Claim:
    paper, losses = "the loss of plain networks grows significantly with depth", _losses(rows)
    if losses is None:
        return Claim(paper)
    return Claim(paper, _listed(losses), losses == sorted(losses) and losses[-1] > _SIMILAR * losses[0])


def _deep(rows: Sequence[Row | None]) -> Claim:
    paper = f"highways of 50 and 100 layers do as well as those of 10 and 20 (here: within a factor of {_SIMILAR:g})"
    losses = _losses(rows)
    if losses is None:
        return Claim(paper)
    return Claim(paper, _listed(losses), max(losses[2:]) <= _SIMILAR * max(losses[:2]))


def _hundredfold(rows: Sequence[Row]) -> Claim:
    paper = "at 100 layers, the highway's loss is more than 100 times lower than the plain network's"
    times = ratio(rows)
    return Claim(paper) if times is None else Claim(paper, f"{times:,.0f} times", times > _BETTER)


def _faster(plain: Sequence[Row | None], highway: Sequence[Row | None]) -> Claim:
    paper = f"highways converge faster at every depth (here: epochs to a loss below {LEARNT:g})"
    if _losses([*plain, *highway]) is None:
        return Claim(paper)
    theirs, ours = ([row.learnt_after if row else None for row in rows] for rows in (plain, highway))
    pairs = list(zip(ours, theirs, strict=True))
    text = "; ".join(
        f"{depth} layers: {fast or 'never'}, plain {slow or 'never'}"
        for depth, (fast, slow) in zip(DEPTHS, pairs, strict=True)
    )
    return Claim(paper, text, all(fast is not None and (slow is None or fast < slow) for fast, slow in pairs))


def _losses(rows: Sequence[Row | None]) -> list[float] | None:
    """The best loss of each network, if there is one of every network."""
    losses = [row.best for row in rows if row is not None and row.best is not None]
    return losses if len(losses) == len(rows) else None


def _listed(losses: Sequence[float]) -> str:
    return ", ".join(f"{loss:.2g}" for loss in losses)
