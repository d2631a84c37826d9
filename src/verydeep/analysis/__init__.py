"""The look inside a trained network: gates, routing, lesions, and the network without its idle layers."""

from verydeep.analysis._data import Data, Progress, some_samples
from verydeep.analysis._findings import Findings, load_findings, save_findings
from verydeep.analysis._gates import gate_statistics
from verydeep.analysis._greedy import depth_usage, greedy_lesions
from verydeep.analysis._lesions import lesion_study, pair_lesions
from verydeep.analysis._observations import IDLE, observations
from verydeep.analysis._prune import highway_layers, prune, removable
from verydeep.analysis._prune_report import prune_report
from verydeep.analysis._results import (
    NOISE,
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
    is_significant,
)
from verydeep.analysis._routing import class_routing
from verydeep.analysis._saving import load_result, save_result
from verydeep.analysis._score import evaluate_model
from verydeep.analysis._signal import signal_flow

__all__ = [
    "IDLE",
    "NOISE",
    "ClassRouting",
    "Data",
    "DepthUsage",
    "Findings",
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
    "evaluate_model",
    "gate_statistics",
    "greedy_lesions",
    "highway_layers",
    "is_significant",
    "lesion_study",
    "load_findings",
    "load_result",
    "observations",
    "pair_lesions",
    "prune",
    "prune_report",
    "removable",
    "save_findings",
    "save_result",
    "signal_flow",
    "some_samples",
]
