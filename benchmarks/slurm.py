"""Requeue SLURM's jobs at random instants: `python benchmarks/slurm.py [--requeues 10] [--trials 12]`.

Runs cluster/workers.sbatch for a search and cluster/train.sbatch for a single training in a SLURM of one node from
Debian's packages. Jobs are requeued by SLURM (`scontrol requeue`) and by themselves, as before their time limit. Every
training must be completed once, with the metrics and weights of an undisturbed one. The result is
results/benchmarks/slurm.json.
"""

import argparse
import json
import random
import shlex
import subprocess
import sys
import tempfile
import time
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any

from _result import write_result
from _slurm import INSTALL, Slurm, installed

import verydeep
from verydeep.processes import python_command
from verydeep.search import open_search, read_search, start_search
from verydeep.training import Run

ROOT = Path(__file__).parents[1]
TRAINING = """
epochs = {epochs}
batch_size = 10
data = {{ source = "digits", validation = 0.2 }}
model = {{ depth = 20 }}
"""
SEARCH = """
[search]
trials = {trials}

[search.space]
optim.lr = {{ low = 0.01, high = 1.0, log = true }}
model.gate_bias = {{ low = -5.0, high = -1.0 }}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requeues", type=int, default=10)
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "benchmarks" / "slurm.json")
    options = parser.parse_args()
    if not installed():
        sys.exit(f"SLURM is not installed: {INSTALL}")
    with tempfile.TemporaryDirectory() as name, Slurm() as slurm, chdir(name):
        make_command(Path(name), slurm)
        Path("training.toml").write_text(TRAINING.format(epochs=100))
        Path("search.toml").write_text((TRAINING + SEARCH).format(epochs=20, trials=options.trials))
        found = {
            "workers": run_search(slurm, options.requeues),
            "train": run_training(slurm, max(1, options.requeues // 3)),
        }
    write_result(options.out, found)
    print(json.dumps(found, indent=1))


def make_command(folder: Path, slurm: Slurm) -> None:
    """Make `verydeep` a command that runs this code with one thread."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "verydeep"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(python_command("-m", "verydeep"))} "$@"\n')
    program.chmod(0o755)
    slurm.environment["PATH"] = f"{folder / 'bin'}:{slurm.environment['PATH']}"
    slurm.environment["PYTHONPATH"] = str(Path(verydeep.__file__).parents[1])
    slurm.environment["OMP_NUM_THREADS"] = "1"


def run_search(slurm: Slurm, requeues: int) -> dict[str, Any]:
    study = start_search("study", read_search(Path("search.toml")))
    job = slurm.run("sbatch", "--parsable", "--array=0-1", ROOT / "cluster" / "workers.sbatch", "study")
    done = disturb(slurm, job, requeues)
    calm = ["verydeep", "search", "search.toml", "--study", "calm", "--jobs", "1", "--quiet"]
    subprocess.run(calm, env=slurm.environment, check=True)
    records, expected = study.records(), open_search("calm").records()
    names = [record.name for record in expected]
    counted = [trial.user_attrs["training"] for trial in study.optuna.get_trials() if trial.value is not None]
    return {
        "requeues": done,
        "trainings": len(records),
        "complete": sum(record.status == "finished" for record in records),
        "counted_twice": len(counted) - len(set(counted)),
        "attempts": sum(record.attempts for record in records),
        "same_bits": sum(contents(Path("study", name)) == contents(Path("calm", name)) for name in names),
    }


def run_training(slurm: Slurm, requeues: int) -> dict[str, Any]:
    file = ROOT / "cluster" / "train.sbatch"
    job = slurm.run("sbatch", "--parsable", "--cpus-per-task=1", file, "training.toml", "run")
    done = disturb(slurm, job, requeues)
    calm = ["verydeep", "train", "training.toml", "--folder", "calm-run", "--quiet"]
    subprocess.run(calm, env=slurm.environment, check=True)
    return {"requeues": done, "same_bits": contents(Path("run")) == contents(Path("calm-run"))}


def disturb(slurm: Slurm, job: str, requeues: int) -> int:
    """Requeue a job's tasks at random instants until it has ended, and return how often."""
    chance, requeued, done = random.Random(0), set(), 0
    while states := {task: state for task, state in slurm.states(job).items() if state not in ("COMPLETED", "FAILED")}:
        time.sleep(chance.uniform(2.0, 6.0))
        for task in [task for task in requeued if states.get(task) == "PENDING"]:
            slurm.run("scontrol", "update", f"JobId={task_name(job, task)}", "StartTime=now+2seconds")
            requeued.remove(task)
        running = [task for task, state in states.items() if state == "RUNNING" and task not in requeued]
        if running and done < requeues:
            task = chance.choice(sorted(running))
            by_slurm, itself = ("scontrol", "requeue"), ("scancel", "--batch", "--signal=USR1")
            with suppress(AssertionError):  # it has just ended
                slurm.run(*(itself if done % 2 else by_slurm), task_name(job, task))
                requeued.add(task)
                done += 1
    assert set(slurm.states(job).values()) == {"COMPLETED"}, slurm.states(job)
    return done


def task_name(job: str, task: str) -> str:
    return f"{job}_{task}" if task else job


def contents(path: Path) -> tuple[list[dict[str, object]], bytes]:
    """Metrics without times, and weights, of a finished run."""
    run = Run.load(path)
    assert run.summary is not None
    return [line.to_dict() | {"seconds": 0} for line in run.metrics], (path / "model.safetensors").read_bytes()


if __name__ == "__main__":
    main()
