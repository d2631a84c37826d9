"""Our networks against PyTorch, torch.compile and JAX on this machine."""

from verydeep.bench._run import bench_tasks, limited, load_results, run_bench
from verydeep.bench._table import bench_table

__all__ = ["bench_table", "bench_tasks", "limited", "load_results", "run_bench"]
