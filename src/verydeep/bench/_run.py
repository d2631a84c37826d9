"""Running the benchmarks: the measuring processes, and a result file per task."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from verydeep.bench._tasks import BenchTask, available_cores
from verydeep.errors import UserError
from verydeep.files import read_json, write_atomic
from verydeep.processes import ChildProcess
from verydeep.training import environment


def run_bench(tasks: list[BenchTask], folder: str | Path) -> Iterator[BenchTask]:
    """Measure the tasks that have no result yet.

    Results of another machine or of other versions are measured again.

    Args:
        tasks: What to measure, such as `bench_tasks(quick=True)`.
        folder: The folder of the results, a JSON file per task.

    Yields:
        Each task, once its result is in the folder.

    Example:
        >>> from verydeep.bench import bench_tasks, run_bench
        >>> tasks = [task for task in bench_tasks(quick=True) if task.name == "peak-t1"]
        >>> for task in run_bench(tasks, "bench"):
        ...     print(task.name)
        peak-t1
    """
    folder, pending = Path(folder), []
    for task in tasks:
        if _is_done(folder / f"{task.name}.json", task):
            yield task
        else:
            pending.append(task)
    with tempfile.TemporaryDirectory() as cache:
        for group in _groups(pending):
            if group[0].kernel_cache:
                with _process(group[0], Path(cache)) as ask:
                    ask(group[0].message)  # fills the cache for the measured process
            with _process(group[0], Path(cache)) as ask:
                for task in group:
                    result = ask(task.message)
                    result |= {"environment": _environment(task), "date": datetime.now(UTC).isoformat()}
                    write_atomic(folder / f"{task.name}.json", json.dumps(result, indent=1) + "\n")
                    yield task


def load_results(tasks: list[BenchTask], folder: str | Path) -> dict[str, dict[str, Any]]:
    """Read the results that are there.

    Args:
        tasks: The tasks whose results are read.
        folder: The folder of the results.

    Returns:
        The results by task name; tasks that have not been measured are missing.

    Example:
        >>> from verydeep.bench import bench_tasks, load_results
        >>> load_results(bench_tasks(quick=True), "bench")
        {}
    """
    paths = {task.name: Path(folder) / f"{task.name}.json" for task in tasks}
    return {name: read_json(path) for name, path in paths.items() if path.exists()}


def _groups(tasks: list[BenchTask]) -> Iterator[list[BenchTask]]:
    """Group tasks that can share a process."""
    for threads in sorted({task.threads for task in tasks}):
        same = [task for task in tasks if task.threads == threads]
        yield from ([task] for task in same if task.fresh_process)
        if together := [task for task in same if not task.fresh_process]:
            yield together


@contextmanager
def _process(task: BenchTask, cache: Path) -> Iterator[Any]:
    """Start a measuring process; yields a function that sends it a message and returns its answer."""
    variables = dict(os.environ) | {name: str(task.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    # Without these, torch.compile would remember the sizes of earlier networks and compile for dynamic shapes.
    variables |= {"TORCHINDUCTOR_CACHE_DIR": str(cache / "torch"), "TORCH_DYNAMO_AUTOMATIC_DYNAMIC_LOCAL_PGO": "0"}
    if task.kernel_cache is not None:
        variables["XDG_CACHE_HOME"] = str(cache / ("cached" if task.kernel_cache else "uncached"))
    with tempfile.TemporaryFile("w+") as errors:
        process = ChildProcess("-m", "verydeep.bench._child", environment=variables, errors=errors)
        process.send({"threads": task.threads, "cores": available_cores()[: task.threads]})

        def ask(message: dict[str, Any]) -> dict[str, Any]:
            process.send(message)
            answer = process.receive()
            if answer is None:
                errors.seek(0)
                last = (errors.read().strip().splitlines() or ["no message"])[-1]
                raise UserError(f"the measuring process died during {message}: {last}")
            return answer

        try:
            yield ask
        finally:
            process.kill()


def _environment(task: BenchTask) -> dict[str, Any]:
    others = {name: version(name) if find_spec(name) else None for name in ("jax", "onnxruntime")}
    return environment() | others | {"threads": task.threads, "asked": task.message}


def _is_done(path: Path, task: BenchTask) -> bool:
    """Whether there is a result of this task, this machine and these versions."""
    if not path.exists():
        return False
    before, now = read_json(path, "delete it to measure again").get("environment", {}), _environment(task)
    names = ("verydeep", "torch", "jax", "onnxruntime", "python", "processor", "git", "asked")
    return all(before.get(name) == now[name] for name in names)
