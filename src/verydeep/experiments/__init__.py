"""The paper's comparisons, and the benchmarks, as short programs on top of everything else."""

from verydeep.experiments._bench import bench_tasks, limited, load_results, run_bench
from verydeep.experiments._bench_table import bench_table
from verydeep.experiments._demo import demo_configs, demo_data, verdict
from verydeep.experiments._pair import Epoch, Step, train_side_by_side

__all__ = [
    "Epoch",
    "Step",
    "bench_table",
    "bench_tasks",
    "demo_configs",
    "demo_data",
    "limited",
    "load_results",
    "run_bench",
    "train_side_by_side",
    "verdict",
]
