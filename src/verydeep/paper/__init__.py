"""The paper's experiments: the demo, Figure 1 and Tables 1 to 3, each with its own trainings and pages.

Experiments take folders for runs and results, train whatever the results lack (`Fig1.train`, `Tables.train`,
`train_side_by_side`), and can be stopped at any time. From the results alone come the rows, curves and claims that the
commands print and draw, and the Markdown pages `fig1_page` and `write_page`.
"""

from verydeep.paper._demo import demo_configs, demo_data, verdict
from verydeep.paper._jobs import Job, Outcome, train_jobs
from verydeep.paper._markdown import render_markdown
from verydeep.paper._recipes import Recipe, config_folder, read_recipe
from verydeep.paper._results_page import page_path, results_page, write_page
from verydeep.paper._side_by_side import Epoch, Step, train_side_by_side
from verydeep.paper.fig1._claims import PaperClaim, claims
from verydeep.paper.fig1._gate_bias import OpenLayers, gate_biases, open_layers, recommended_gate_bias
from verydeep.paper.fig1._halving import Fig1Task, eliminated, epochs_left, open_tasks, participants
from verydeep.paper.fig1._influence import Influence, influences
from verydeep.paper.fig1._page import claim_lines, fig1_page, fig1_table_lines
from verydeep.paper.fig1._protocol import (
    HALVING,
    NETWORKS,
    QUICK,
    Fig1Network,
    HalvingStage,
    Protocol,
    selected_networks,
    settings_of,
    without_halving,
)
from verydeep.paper.fig1._results import Fig1Results, Fig1Trial
from verydeep.paper.fig1._study import Fig1, estimate
from verydeep.paper.fig1._summary import Fig1Row, best_curves, fig1_rows, loss_ratio, mean_curves
from verydeep.paper.tables._page import log_lines, read_results, replaced_recipes, table_lines
from verydeep.paper.tables._results import SeedCurve, TableResult
from verydeep.paper.tables._rows import AUTHOR_LOGS, TABLE_ROWS, TABLES, TEACHER, TableRow, selected_rows
from verydeep.paper.tables._study import Tables
from verydeep.paper.tables._training_order import Schedule, TableTask

__all__ = [
    "AUTHOR_LOGS",
    "HALVING",
    "NETWORKS",
    "QUICK",
    "TABLES",
    "TABLE_ROWS",
    "TEACHER",
    "Epoch",
    "Fig1",
    "Fig1Network",
    "Fig1Results",
    "Fig1Row",
    "Fig1Task",
    "Fig1Trial",
    "HalvingStage",
    "Influence",
    "Job",
    "OpenLayers",
    "Outcome",
    "PaperClaim",
    "Protocol",
    "Recipe",
    "Schedule",
    "SeedCurve",
    "Step",
    "TableResult",
    "TableRow",
    "TableTask",
    "Tables",
    "best_curves",
    "claim_lines",
    "claims",
    "config_folder",
    "demo_configs",
    "demo_data",
    "eliminated",
    "epochs_left",
    "estimate",
    "fig1_page",
    "fig1_rows",
    "fig1_table_lines",
    "gate_biases",
    "influences",
    "log_lines",
    "loss_ratio",
    "mean_curves",
    "open_layers",
    "open_tasks",
    "page_path",
    "participants",
    "read_recipe",
    "read_results",
    "recommended_gate_bias",
    "render_markdown",
    "replaced_recipes",
    "results_page",
    "selected_networks",
    "selected_rows",
    "settings_of",
    "table_lines",
    "train_jobs",
    "train_side_by_side",
    "verdict",
    "without_halving",
    "write_page",
]
