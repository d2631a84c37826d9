"""The paper's comparisons, and the benchmarks, as short programs on top of everything else."""

from verydeep.experiments._bench import bench_tasks, limited, load_results, run_bench
from verydeep.experiments._bench_table import bench_table
from verydeep.experiments._demo import demo_configs, demo_data, verdict
from verydeep.experiments._fig1 import HALVING, NETWORKS, QUICK, Network, Protocol, Stage, chosen, settings_of, strict
from verydeep.experiments._fig1_analysis import Influence, influences
from verydeep.experiments._fig1_claims import Claim, claim_lines, claims
from verydeep.experiments._fig1_gate_bias import OpenLayers, gate_biases, open_layers, recommended_gate_bias
from verydeep.experiments._fig1_results import Results, Trial
from verydeep.experiments._fig1_run import Fig1, estimate
from verydeep.experiments._fig1_table import Row, best_curves, mean_curves, ratio, table
from verydeep.experiments._fig1_text import fig1_text, table_lines
from verydeep.experiments._halving import Task, eliminated, epochs_left, participants, tasks
from verydeep.experiments._pair import Epoch, Step, train_side_by_side
from verydeep.experiments._recipes import Recipe, config_folder, read_recipe
from verydeep.experiments._results_page import page_path, results_page, write_page
from verydeep.experiments._tables import ENTRIES, LOGS, TABLES, TEACHER, Entry, chosen_entries
from verydeep.experiments._tables_results import Curve, TableResult
from verydeep.experiments._tables_run import Tables
from verydeep.experiments._tables_text import log_lines, read_results, tables_lines
from verydeep.experiments._variations import STUDIES, Study, Variation
from verydeep.experiments._variations_run import Scores, VariationStudy
from verydeep.experiments._variations_text import Spread, pooled_spread, recipe_page, score_lines
from verydeep.experiments._variations_text import verdict as variation_verdict

__all__ = [
    "ENTRIES",
    "HALVING",
    "LOGS",
    "NETWORKS",
    "QUICK",
    "STUDIES",
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
    "Scores",
    "Spread",
    "Stage",
    "Step",
    "Study",
    "TableResult",
    "Tables",
    "Task",
    "Trial",
    "Variation",
    "VariationStudy",
    "bench_table",
    "bench_tasks",
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
    "limited",
    "load_results",
    "log_lines",
    "mean_curves",
    "open_layers",
    "page_path",
    "participants",
    "pooled_spread",
    "ratio",
    "read_recipe",
    "read_results",
    "recipe_page",
    "recommended_gate_bias",
    "results_page",
    "run_bench",
    "score_lines",
    "settings_of",
    "strict",
    "table",
    "table_lines",
    "tables_lines",
    "tasks",
    "train_side_by_side",
    "variation_verdict",
    "verdict",
    "write_page",
]
