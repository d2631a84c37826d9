"""How many workers a storage can serve: `python benchmarks/worker_load.py [--workers 100] [--trainings 200]`.

Workers that claim trainings and report their epochs without training anything, in threads of two processes, on a
journal file and on a PostgreSQL server from Debian's packages. Real workers report once per epoch, so what matters is
how many epochs per second the storage takes, from all of them together. Server and workers share this machine. The
result is results/benchmarks/worker-load.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from verydeep.data import DataConfig
from verydeep.processes import python_command
from verydeep.studies import BUSY, Group, open_study, start_study, with_retry
from verydeep.studies._claim import claim_training, finish_training, report_epochs
from verydeep.training import EpochMetrics, TrainConfig

ROOT = Path(__file__).parents[1]
PROCESSES = 2
EPOCHS = 10
METRICS = {"lr": 0.1, "loss": 0.5, "accuracy": 0.9, "valid_loss": 0.5, "valid_accuracy": 0.9, "seconds": 1.5}


def main() -> None:
    from _postgres import Server, installed  # not at the top, because children are started without this folder
    from _result import write_result

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--trainings", type=int, default=200)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "benchmarks" / "worker-load.json")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        binaries = installed()
        if binaries is None:
            sys.exit("PostgreSQL is not installed: apt-get install postgresql")
        storages = {"journal": None, "postgresql": held.enter_context(Server(binaries)).url}
        for name, storage in storages.items():
            for workers in options.workers:
                measured = measure(folder / f"{name}-{workers}", storage, workers, options.trainings)
                found.setdefault(name, {})[str(workers)] = measured
                print(name, workers, json.dumps(measured), flush=True)
    write_result(options.out, {"trainings": options.trainings, "epochs_per_training": EPOCHS, **found})


def measure(folder: Path, storage: str | None, workers: int, trainings: int) -> dict[str, Any]:
    """Run a study to its end with workers that only report."""
    config = TrainConfig(DataConfig("digits", validation=0.2), epochs=EPOCHS)
    study = start_study(folder, [Group("", config, seeds=tuple(range(trainings)))], storage=storage)
    command = python_command(__file__, "--child", str(folder), str(workers // PROCESSES), storage or "")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    children = [subprocess.Popen(command, **pipes) for _ in range(PROCESSES)]
    for child in children:
        child.stdout.readline()  # its workers are ready
    begin = time.perf_counter()
    times = [json.loads(text) for text in run_together(children)]
    seconds = time.perf_counter() - begin
    assert study.unfinished() == 0
    claims, epochs = (sorted(time for each in times for time in each[kind]) for kind in ("claims", "epochs"))
    assert len(epochs) == trainings * EPOCHS
    return {
        "epochs_per_second": round(len(epochs) / seconds, 1),
        "seconds_per_epoch_report": round(statistics.median(epochs), 4),
        "seconds_per_claim": round(statistics.median(claims), 4),
    }


def run_together(children: list[Any]) -> list[str]:
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    return [child.communicate()[0] for child in children]


def run_workers(folder: str, count: int, storage: str | None) -> None:
    times: dict[str, list[float]] = {"claims": [], "epochs": []}
    ready, go = threading.Barrier(count + 1), threading.Event()
    arguments = (folder, storage, times, ready, go)
    threads = [
        threading.Thread(target=run_worker, args=(f"worker-{os.getpid()}-{n}", *arguments)) for n in range(count)
    ]
    for thread in threads:
        thread.start()
    ready.wait()
    print("ready", flush=True)
    sys.stdin.readline()
    go.set()
    for thread in threads:
        thread.join()
    print(json.dumps(times))


def run_worker(
    name: str,
    folder: str,
    storage: str | None,
    times: dict[str, list[float]],
    ready: threading.Barrier,
    go: threading.Event,
) -> None:
    """What `work` tells the storage about every training, without the training."""
    study = with_retry(partial(open_study, folder, storage=storage), BUSY)
    store = study.store
    with store.working(name):
        ready.wait()
        go.wait()
        while True:
            begin = time.perf_counter()
            claim = store.with_retry(partial(claim_training, study, name))
            if claim is None:
                return
            times["claims"].append(time.perf_counter() - begin)
            curve = [EpochMetrics(epoch=epoch, **METRICS) for epoch in range(1, EPOCHS + 1)]
            with store.heartbeats(claim.trial_id):
                for metrics in curve:
                    begin = time.perf_counter()
                    store.with_retry(partial(report_epochs, study, claim, metrics))
                    times["epochs"].append(time.perf_counter() - begin)
            result = {"status": "finished", "epochs": EPOCHS, "of": EPOCHS, "seconds": 15.0, "run": ""}
            store.with_retry(
                lambda claim=claim, result=result, curve=curve: finish_training(study, claim, result, curve)
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        run_workers(sys.argv[2], int(sys.argv[3]), sys.argv[4] or None)
    else:
        main()
