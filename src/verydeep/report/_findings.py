"""All that an analysis found, for one report."""

from dataclasses import dataclass

from verydeep.analysis import (
    ClassRouting,
    DepthUsage,
    GateStatistics,
    LesionStudy,
    PairLesion,
    PruneReport,
    SignalFlow,
)
from verydeep.errors import UserError


@dataclass(frozen=True)
class Findings:
    """What there is; None or empty where nobody has looked."""

    gates: GateStatistics | None = None
    routing: ClassRouting | None = None
    lesions: LesionStudy | None = None
    pairs: PairLesion | None = None
    usage: DepthUsage | None = None
    flow: tuple[SignalFlow, ...] = ()
    prune: PruneReport | None = None

    def __post_init__(self) -> None:
        greedy = None if self.usage is None else self.usage.greedy
        found = [self.gates, self.routing, self.lesions, self.pairs, greedy, self.prune]
        counts = {len(result.layers) for result in found if result is not None}
        if len(counts) > 1:
            raise UserError(f"these results are of networks with {_listed(counts)} layers; analyse the same one again")


def _listed(counts: set[int]) -> str:
    return " and ".join(map(str, sorted(counts)))
