"""The paper's comparisons, and the benchmarks, as short programs on top of everything else."""

from verydeep.paper._demo import demo_configs, demo_data, verdict
from verydeep.paper._recipes import Recipe, config_folder, read_recipe
from verydeep.paper._results_page import page_path, results_page, write_page
from verydeep.paper._side_by_side import Epoch, Step, train_side_by_side
from verydeep.paper.fig1._claims import Claim, claim_lines, claims
from verydeep.paper.fig1._gate_bias import OpenLayers, gate_biases, open_layers, recommended_gate_bias
from verydeep.paper.fig1._halving import Task, eliminated, epochs_left, participants, tasks
from verydeep.paper.fig1._influence import Influence, influences
from verydeep.paper.fig1._page import fig1_text, table_lines
from verydeep.paper.fig1._protocol import (
    HALVING,
    NETWORKS,
    QUICK,
    Network,
    Protocol,
    Stage,
    chosen,
    settings_of,
    strict,
)
from verydeep.paper.fig1._study import Fig1, estimate
from verydeep.paper.fig1._summary import Row, best_curves, mean_curves, ratio, table
from verydeep.paper.fig1._trials import Results, Trial
from verydeep.paper.tables._page import log_lines, read_results, tables_lines
from verydeep.paper.tables._results import Curve, TableResult
from verydeep.paper.tables._rows import ENTRIES, LOGS, TABLES, TEACHER, Entry, chosen_entries
from verydeep.paper.tables._study import Tables

__all__ = [
    "ENTRIES",
    "HALVING",
    "LOGS",
    "NETWORKS",
    "QUICK",
    "TABLES",
    "TEACHER",
    "Claim",
    "Curve",
    "Entry",
    "Epoch",
    "Fig1",
    "Influence",
    "Network",
    "OpenLayers",
    "Protocol",
    "Recipe",
    "Results",
    "Row",
    "Stage",
    "Step",
    "TableResult",
    "Tables",
    "Task",
    "Trial",
    "best_curves",
    "chosen",
    "chosen_entries",
    "claim_lines",
    "claims",
    "config_folder",
    "demo_configs",
    "demo_data",
    "eliminated",
    "epochs_left",
    "estimate",
    "fig1_text",
    "gate_biases",
    "influences",
    "log_lines",
    "mean_curves",
    "open_layers",
    "page_path",
    "participants",
    "ratio",
    "read_recipe",
    "read_results",
    "recommended_gate_bias",
    "results_page",
    "settings_of",
    "strict",
    "table",
    "table_lines",
    "tables_lines",
    "tasks",
    "train_side_by_side",
    "verdict",
    "write_page",
]
