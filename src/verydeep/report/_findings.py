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
