"""Figures of results, and the HTML pages: about a run, about how deep a network must be, and to explore a network.

Each `plot_*` function takes a result of an analysis, a search or a training and draws it without computing anything.
It returns matplotlib's figure, which shows itself in a notebook, and writes it to a file if it gets a path.
`write_report` takes a run, `write_model_report` the analysis of any other network, and `write_depth_page` the answer
of `how_deep`; each writes one self-contained page.
`write_explore` writes a page in which a run's network itself answers, for samples, drawings and rows of a table.
"""

from typing import TYPE_CHECKING

from verydeep.lazy import lazy_imports

if TYPE_CHECKING:
    from verydeep.report._layers_used import (
        UsageSamples as UsageSamples,
        find_usage as find_usage,
        held_out_split as held_out_split,
        summarise_usage as summarise_usage,
        usage_samples as usage_samples,
    )
    from verydeep.report._markdown import render_markdown as render_markdown
    from verydeep.report.explore._page import write_explore
    from verydeep.report.figures._bench import plot_bench as plot_bench
    from verydeep.report.figures._claims import (
        plot_claim_lines as plot_claim_lines,
        plot_claim_points as plot_claim_points,
    )
    from verydeep.report.figures._confusion import plot_confusion
    from verydeep.report.figures._curves import plot_curves
    from verydeep.report.figures._depth import plot_depth
    from verydeep.report.figures._evaluation import (
        main_figure_name as main_figure_name,
        plot_calibration,
        plot_evaluation,
    )
    from verydeep.report.figures._fig1 import plot_fig1 as plot_fig1, plot_gate_bias as plot_gate_bias
    from verydeep.report.figures._findings import plot_findings
    from verydeep.report.figures._gates import plot_feature_gates, plot_gates
    from verydeep.report.figures._lesions import plot_depth_usage, plot_lesions, plot_pair_lesions
    from verydeep.report.figures._prune import plot_prune
    from verydeep.report.figures._random_changes import plot_random_changes
    from verydeep.report.figures._routing import plot_class_distances, plot_routing
    from verydeep.report.figures._run import plot_run
    from verydeep.report.figures._search import plot_parallel, plot_slices
    from verydeep.report.figures._signal_flow import plot_signal_flow
    from verydeep.report.figures._table_curves import TableCurves as TableCurves, plot_tables as plot_tables
    from verydeep.report.html._depth_page import write_depth_page
    from verydeep.report.html._model_page import write_model_report
    from verydeep.report.html._page import write_report
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = [
    "plot_calibration",
    "plot_class_distances",
    "plot_confusion",
    "plot_curves",
    "plot_depth",
    "plot_depth_usage",
    "plot_evaluation",
    "plot_feature_gates",
    "plot_findings",
    "plot_gates",
    "plot_lesions",
    "plot_pair_lesions",
    "plot_parallel",
    "plot_prune",
    "plot_random_changes",
    "plot_routing",
    "plot_run",
    "plot_signal_flow",
    "plot_slices",
    "write_depth_page",
    "write_explore",
    "write_model_report",
    "write_report",
]
