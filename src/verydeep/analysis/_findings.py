"""All that was found out about one network, and the folder it is kept in."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from verydeep.analysis._observations import observations
from verydeep.analysis._results import (
    ClassRouting,
    DepthUsage,
    GateStatistics,
    LesionStudy,
    Observations,
    PairLesion,
    PruneReport,
    SignalFlow,
)
from verydeep.analysis._saving import load_result, save_result

_FILES: dict[str, type[Any]] = {
    "gates": GateStatistics,
    "routing": ClassRouting,
    "lesions": LesionStudy,
    "pairs": PairLesion,
    "usage": DepthUsage,
    "prune": PruneReport,
}
_FLOW = "flow-{}.npz"

T = TypeVar("T")


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

    @property
    def observations(self) -> Observations:
        """The paper's observations, as far as the results go."""
        return observations(self.gates, self.lesions, self.usage)


def save_findings(findings: Findings, folder: str | Path) -> list[Path]:
    """Write one file for each result there is, over those of the same kind; return which."""
    folder = Path(folder)
    parts = {name: getattr(findings, name) for name in _FILES}
    written = {folder / f"{name}.npz": result for name, result in parts.items() if result is not None}
    written |= {folder / _FLOW.format(number): flow for number, flow in enumerate(findings.flow, 1)}
    for path, result in written.items():
        save_result(result, path)
    if findings.flow:
        for path in _flows(folder)[len(findings.flow) :]:  # of an earlier comparison with more networks
            path.unlink(missing_ok=True)
    return list(written)


def load_findings(folder: str | Path) -> Findings:
    """All results in a folder, such as RUN/analysis; none where it is not there."""
    folder = Path(folder)
    parts = {name: _optional(folder / f"{name}.npz", kind) for name, kind in _FILES.items()}
    return Findings(**parts, flow=tuple(load_result(path, SignalFlow) for path in _flows(folder)))


def _optional(path: Path, kind: type[T]) -> T | None:
    return load_result(path, kind) if path.exists() else None


def _flows(folder: Path) -> list[Path]:
    paths = folder.glob(_FLOW.format("[0-9]*"))
    return sorted(paths, key=lambda path: (len(path.name), path.name))
