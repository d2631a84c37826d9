"""A training step with two threads against one, on cores that others use: `python benchmarks/busy_machine.py`.

Each network trains with one and with two threads, in a process of its own each, on two cores: alone, and beside one and
two processes that compute without a pause. The processes take turns, a few steps at a time. In every round, the median
step with two threads is divided by the median step with one. `--before COMMIT` measures an earlier version as well.
"""

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from verydeep.processes import ChildProcess, messages, python_command

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results" / "benchmarks" / "busy-machine.json"
NETWORKS: dict[str, dict[str, Any]] = {
    "highway-mlp": {"options": {"depth": 50, "width": 50}, "steps": 40},
    "highway-mnist-16": {"options": {}, "steps": 6},
}
BATCH, SAMPLES, SEED, CORES = 100, 2000, 0, 2
BUSY = "while True: pass"


def train() -> None:
    """In a measuring process: train as many steps as each message says, and answer with the seconds of each step."""
    answers, sys.stdout = sys.stdout, sys.stderr
    received = messages()
    first = next(received)
    os.sched_setaffinity(0, first["cores"])  # before torch starts its threads
    import torch

    from verydeep.bench._competitors import OurCompetitor
    from verydeep.cpu import cpu_settings
    from verydeep.data import Batches, Split
    from verydeep.models import create_model

    torch.manual_seed(SEED)
    network = OurCompetitor(create_model(first["network"], **first["options"]))
    split = Split(torch.rand(SAMPLES, 1, 28, 28), torch.randint(0, 10, (SAMPLES,)))
    batches = Batches(split, BATCH, seed=SEED, drop_last=True)

    def endless() -> Iterator[Any]:
        epoch = 0
        while True:
            yield from batches.epoch(epoch)
            epoch += 1

    source = endless()
    with cpu_settings(first["threads"]):
        for message in received:
            times = []
            for _ in range(message["steps"]):
                start = time.perf_counter()
                network.train(*next(source))
                times.append(time.perf_counter() - start)
            print(json.dumps({"seconds": times}), file=answers, flush=True)


@contextmanager
def busy_processes(count: int, cores: list[int]) -> Iterator[None]:
    """Processes that compute without a pause on the same cores."""
    code = f"import os; os.sched_setaffinity(0, {cores})\n{BUSY}"
    processes = [subprocess.Popen(python_command("-c", code)) for _ in range(count)]
    time.sleep(0.5 if count else 0)
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def extract(commit: str, folder: Path) -> Path:
    """Write the files of a commit into a folder."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder


def measure(name: str, rounds: int, before: Path | None) -> dict[str, Any]:
    """Measure one network beside 0, 1 and 2 busy processes."""
    cores, network = sorted(os.sched_getaffinity(0))[:CORES], NETWORKS[name]
    sources = {"now": ROOT} | ({} if before is None else {"before": before})
    steps = network["steps"]
    processes = {}
    for version, folder in sources.items():
        for threads in (1, 2):
            variables = os.environ | {"PYTHONPATH": str(folder / "src")}
            process = ChildProcess(str(Path(__file__)), "--train", environment=variables, errors=sys.stderr)
            process.send({"network": name, "options": network["options"], "threads": threads, "cores": cores})
            processes[f"{version}, {threads} thread{'s' if threads > 1 else ''}"] = process
    result: dict[str, Any] = {}
    try:
        for process in processes.values():
            _steps(process, 3)
        for busy in (0, 1, 2):
            load = round(os.getloadavg()[0], 2)  # that of others
            with busy_processes(busy, cores):
                for label, process in processes.items():
                    _steps(process, _count(steps, label))  # a warm-up: the kernels notice that the machine is busy
                order = list(processes)
                times: dict[str, list[list[float]]] = {label: [] for label in processes}
                for _ in range(rounds):
                    for label in order:
                        times[label].append(_steps(processes[label], _count(steps, label)))
                    order = order[1:] + order[:1]
            result[f"{busy} busy"] = {"load_before": load} | _summary(times)
            print(name, json.dumps({f"{busy} busy": result[f"{busy} busy"]}, indent=1), flush=True)
    finally:
        for process in processes.values():
            process.kill()
    return result


def _count(steps: int, label: str) -> int:
    """The steps of one turn; an earlier version may need seconds for one."""
    return max(2, steps // 6) if label.startswith("before") else steps


def _steps(process: ChildProcess, steps: int) -> list[float]:
    process.send({"steps": steps})
    answer = process.receive()
    assert answer is not None, "the measuring process died"
    return [1e3 * seconds for seconds in answer["seconds"]]


def _summary(times: dict[str, list[list[float]]]) -> dict[str, Any]:
    """For each process, minimum and quartiles over all steps; quartiles over rounds of the ratio to one thread."""
    summary: dict[str, Any] = {}
    for label, rounds in times.items():
        steps = [step for each in rounds for step in each]
        summary[label] = {
            "minimum_ms": round(min(steps), 3),
            "quartiles_ms": [round(value, 3) for value in statistics.quantiles(steps, n=4)],
        }
    medians = {label: [statistics.median(each) for each in rounds] for label, rounds in times.items()}
    for version in {label.split(",")[0] for label in times}:
        one, two = medians[f"{version}, 1 thread"], medians[f"{version}, 2 threads"]
        ratios = [b / a for a, b in zip(one, two, strict=True)]
        summary[f"{version}, two threads to one"] = [round(value, 3) for value in statistics.quantiles(ratios, n=4)]
    if "before, 2 threads" in medians:
        pairs = zip(medians["now, 2 threads"], medians["before, 2 threads"], strict=True)
        ratios = [now / before for now, before in pairs]
        summary["two threads, now to before"] = [round(value, 3) for value in statistics.quantiles(ratios, n=4)]
    return summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--before", metavar="COMMIT", help="an earlier version")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    if options.train:
        train()
        return
    from _result import write_result  # not in measuring processes, which do not import from this folder

    with tempfile.TemporaryDirectory() as folder:
        before = None if options.before is None else extract(options.before, Path(folder))
        result = {name: measure(name, options.rounds, before) for name in NETWORKS}
    settings = {
        "rounds": options.rounds,
        "before": options.before,
        "batch": BATCH,
        "seed": SEED,
        "cores": CORES,
        "busy": BUSY,
    }
    write_result(OUT, {"settings": settings | {"networks": NETWORKS}} | result)


if __name__ == "__main__":
    main()
