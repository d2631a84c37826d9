"""The look inside a trained network: gates, routing, lesions, and the network without its idle layers."""

from verydeep.analysis._results import (
    ClassRouting,
    DepthUsage,
    GateStatistics,
    GreedyLesion,
    LesionStudy,
    PairLesion,
    PruneReport,
    Score,
    SignalFlow,
)

__all__ = [
    "ClassRouting",
    "DepthUsage",
    "GateStatistics",
    "GreedyLesion",
    "LesionStudy",
    "PairLesion",
    "PruneReport",
    "Score",
    "SignalFlow",
]
