"""Speed of our networks against eager PyTorch, torch.compile and JAX on this machine.

`bench_tasks` lists what to measure; `run_bench` measures whatever a folder of results lacks, in processes pinned to as
many cores as each task has threads. `load_results` reads the results back and `bench_table` writes them as Markdown.
"""

from verydeep.bench._child import matmul_peak
from verydeep.bench._run import load_results, run_bench
from verydeep.bench._table import bench_table
from verydeep.bench._tasks import BenchTask, Case, bench_cases, bench_tasks, selected_tasks

__all__ = [
    "BenchTask",
    "Case",
    "bench_cases",
    "bench_table",
    "bench_tasks",
    "load_results",
    "matmul_peak",
    "run_bench",
    "selected_tasks",
]
