"""All benchmarks: what is still to be measured, the measuring processes, and the results as they come."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from verydeep.bench._cases import bench_cases
from verydeep.errors import UserError
from verydeep.files import read_json, write_atomic
from verydeep.processes import python_command
from verydeep.training import environment

_DEPTHS = (10, 20, 50, 100, 1000, 10_000)
_CHILD = "import os; {pin}; from verydeep.bench._child import main; main()"


@dataclass(frozen=True)
class Task:
    """One thing to measure, in a process with so many cores.

    Attributes:
        name: Of the result's file.
        threads: Cores of the process.
        what: The message to the measuring process.
        alone: Whether it needs a fresh process: for its memory, or its first call.
        cache: Whether compiled kernels are read from an earlier process; None leaves the user's cache.
    """

    name: str
    threads: int
    what: dict[str, Any]
    alone: bool = False
    cache: bool | None = None


def bench_tasks(quick: bool, compile: bool = True) -> list[Task]:
    """Everything to measure, by threads."""
    seconds, rounds = (1.5, 5) if quick else (6.0, 15)
    cores = available_cores()
    tasks = [Task(f"peak-t{n}", n, {"task": "peak", "seconds": 0.5}) for n in (1, 2)]
    tasks += [Task(f"first-call-{c}", 1, {"task": "first_call"}, True, c == "cached") for c in ("uncached", "cached")]
    depths = _DEPTHS[2:4] if quick else _DEPTHS
    tasks += [_depth(depth, seconds, recompute=False) for depth in depths if depth <= 1000]
    tasks += [_depth(depth, seconds, recompute=True) for depth in depths]
    settings = {"task": "compare", "seconds": seconds, "rounds": rounds, "compile": compile}
    cases = bench_cases(quick)
    tasks += [Task(case.name, case.threads, settings | {"case": case.to_dict()}) for case in cases]
    return sorted((task for task in tasks if task.threads <= len(cores)), key=lambda task: task.threads)


def _depth(depth: int, seconds: float, recompute: bool) -> Task:
    name = f"depth-{depth}" + ("-recompute" if recompute else "")
    return Task(name, 1, {"task": "depth", "depth": depth, "seconds": seconds, "recompute": recompute}, alone=True)


def available_cores() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def run_bench(tasks: list[Task], folder: Path) -> Iterator[Task]:
    """Measure what has no result in the folder yet; yields a task when its result is there.

    A result of another machine, or of other versions, is measured again.
    """
    pending = []
    for task in tasks:
        if _is_done(folder / f"{task.name}.json", task):
            yield task
        else:
            pending.append(task)
    with tempfile.TemporaryDirectory() as cache:
        for group in _groups(pending):
            if group[0].cache:
                with _process(group[0], Path(cache)) as ask:
                    ask(group[0].what)  # leaves what the measured one finds
            with _process(group[0], Path(cache)) as ask:
                for task in group:
                    result = ask(task.what) | {"environment": _facts(task), "date": datetime.now(UTC).isoformat()}
                    write_atomic(folder / f"{task.name}.json", json.dumps(result, indent=1) + "\n")
                    yield task


def _groups(tasks: list[Task]) -> Iterator[list[Task]]:
    """Tasks that share a process."""
    for threads in sorted({task.threads for task in tasks}):
        mine = [task for task in tasks if task.threads == threads]
        yield from ([task] for task in mine if task.alone)
        if together := [task for task in mine if not task.alone]:
            yield together


@contextmanager
def _process(task: Task, cache: Path) -> Iterator[Any]:
    """A measuring process; what is yielded sends it a message and returns its answer."""
    pin = f"os.sched_setaffinity(0, {available_cores()[: task.threads]})" if hasattr(os, "sched_setaffinity") else ""
    variables = dict(os.environ) | {name: str(task.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    # torch.compile must not start from what other networks have taught it: it would compile for sizes that vary
    variables |= {"TORCHINDUCTOR_CACHE_DIR": str(cache / "torch"), "TORCH_DYNAMO_AUTOMATIC_DYNAMIC_LOCAL_PGO": "0"}
    if task.cache is not None:
        variables["XDG_CACHE_HOME"] = str(cache / ("cached" if task.cache else "uncached"))
    with tempfile.TemporaryFile("w+") as errors:
        command = python_command("-c", _CHILD.format(pin=pin or "pass"))
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
        with subprocess.Popen(command, text=True, env=variables, **pipes) as process:

            def ask(message: dict[str, Any]) -> dict[str, Any]:
                assert process.stdin
                assert process.stdout
                process.stdin.write(json.dumps(message) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
                if not line:
                    errors.seek(0)
                    last = (errors.read().strip().splitlines() or ["no message"])[-1]
                    raise UserError(f"the measuring process ended while it did {message}: {last}")
                return json.loads(line)  # type: ignore[no-any-return]

            try:
                yield ask
            finally:
                process.kill()


def _facts(task: Task) -> dict[str, Any]:
    jax = version("jax") if find_spec("jax") else None
    return environment() | {"threads": task.threads, "jax": jax, "asked": task.what}


def _is_done(path: Path, task: Task) -> bool:
    """Whether the result is of this machine and these versions, and of what is asked now."""
    if not path.exists():
        return False
    before, now = read_json(path, "remove it, and it is measured again").get("environment", {}), _facts(task)
    names = ("verydeep", "torch", "jax", "python", "processor", "git", "asked")
    return all(before.get(name) == now[name] for name in names)


def load_results(tasks: list[Task], folder: Path) -> dict[str, dict[str, Any]]:
    """The results that are there, by name."""
    paths = {task.name: folder / f"{task.name}.json" for task in tasks}
    return {name: read_json(path) for name, path in paths.items() if path.exists()}


def limited(tasks: list[Task], only: str | None) -> list[Task]:
    """Tasks whose names contain some text."""
    return [task for task in tasks if only is None or only in task.name]
