"""Speed of our networks against eager PyTorch, torch.compile, JAX and ONNX Runtime on this machine.

`bench_tasks` lists what to measure; `run_bench` measures whatever a folder of results lacks, in processes pinned to as
many cores as each task has threads. `load_results` reads the results back and `bench_page` writes them as Markdown.
"""

from typing import TYPE_CHECKING

from verydeep.lazy import lazy_imports

if TYPE_CHECKING:
    from verydeep.bench._measurements import matmul_peak as matmul_peak
    from verydeep.bench._page import bench_page, bench_table as bench_table
    from verydeep.bench._run import load_results, run_bench
    from verydeep.bench._tasks import (
        BenchTask,
        Case as Case,
        bench_cases as bench_cases,
        bench_tasks,
        selected_tasks as selected_tasks,
    )
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = ["BenchTask", "bench_page", "bench_tasks", "load_results", "run_bench"]
