"""The look inside a trained network: gates, routing, lesions, and the network without its idle layers."""

from verydeep.analysis._data import Data, Progress, some_samples
from verydeep.analysis._gates import gate_statistics
from verydeep.analysis._greedy import depth_usage, greedy_lesions
from verydeep.analysis._lesions import lesion_study, pair_lesions
from verydeep.analysis._observations import observations
from verydeep.analysis._prune import prune, removable
from verydeep.analysis._prune_report import prune_report
from verydeep.analysis._results import (
    ClassRouting,
    DepthUsage,
    GateStatistics,
    GreedyLesion,
    LesionStudy,
    Observations,
    PairLesion,
    PruneReport,
    Score,
    SignalFlow,
)
from verydeep.analysis._routing import class_routing
from verydeep.analysis._saving import load_result, save_result
from verydeep.analysis._signal import signal_flow

__all__ = [
    "ClassRouting",
    "Data",
    "DepthUsage",
    "GateStatistics",
    "GreedyLesion",
    "LesionStudy",
    "Observations",
    "PairLesion",
    "Progress",
    "PruneReport",
    "Score",
    "SignalFlow",
    "class_routing",
    "depth_usage",
    "gate_statistics",
    "greedy_lesions",
    "lesion_study",
    "load_result",
    "observations",
    "pair_lesions",
    "prune",
    "prune_report",
    "removable",
    "save_result",
    "signal_flow",
    "some_samples",
]
