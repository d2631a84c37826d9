"""Pictures of results, and the report: what is drawn is computed before, and only drawn here."""

from verydeep.report._all import plot_findings
from verydeep.report._bench import plot_bench
from verydeep.report._confusion import plot_confusion
from verydeep.report._curves import plot_curves
from verydeep.report._fig1 import plot_fig1
from verydeep.report._flow import plot_signal_flow
from verydeep.report._gate_bias import plot_gate_bias
from verydeep.report._gates import plot_feature_gates, plot_gates
from verydeep.report._html import write_report
from verydeep.report._lesions import plot_depth_usage, plot_lesions, plot_pair_lesions
from verydeep.report._routing import plot_class_distances, plot_routing
from verydeep.report._search import plot_parallel, plot_slices
from verydeep.report._tables import Network, plot_tables

__all__ = [
    "Network",
    "plot_bench",
    "plot_class_distances",
    "plot_confusion",
    "plot_curves",
    "plot_depth_usage",
    "plot_feature_gates",
    "plot_fig1",
    "plot_findings",
    "plot_gate_bias",
    "plot_gates",
    "plot_lesions",
    "plot_pair_lesions",
    "plot_parallel",
    "plot_routing",
    "plot_signal_flow",
    "plot_slices",
    "plot_tables",
    "write_report",
]
