"""Kill training with `kill -9` at random instants, resume it, and compare with an undisturbed run.

    python benchmarks/kill_and_resume.py                      30 instants on a 50-layer highway network on MNIST
    python benchmarks/kill_and_resume.py CONFIG.toml --kills 100 --seed 1 --out FILE.json

Every run is the command `verydeep train` in a process forked from one that has already imported torch. Instants are
uniform over the training time, from the first checkpoint to the end; a third of the kills then wait for the next epoch,
a third for the next checkpoint and a third for the next evaluation, because a checkpoint is so short that random
instants would hardly ever hit one. The process notes its current phase in a byte of shared memory. A resumed run is
identical if all metrics (except the seconds), the saved weights, and the weights and optimiser state of its last
checkpoint equal those of the undisturbed run bit for bit. The exit code is 1 if any run differs.
"""

import argparse
import contextlib
import mmap
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import sklearn.datasets  # noqa: F401 - imported before the fork, because every run needs it
import torch._dynamo  # noqa: F401 - the first step of an optimiser needs it
from _result import write_result
from safetensors import safe_open

from verydeep.cli.commands._train import main as verydeep_train
from verydeep.config import to_dict
from verydeep.training import Run, read_config
from verydeep.training._trainer import Trainer
from verydeep.training.run._state import RunState

ROOT = Path(__file__).parents[1]
PHASES = ("start or end", "epoch", "checkpoint", "evaluation")


def child(arguments: list[str], phase: mmap.mmap) -> int:
    """Start `verydeep train` in a forked process and return its id."""
    phase[0] = 0
    pid = os.fork()
    if pid:
        return pid
    code = 1
    with contextlib.suppress(BaseException):
        note_phases(phase)
        code = verydeep_train([*arguments, "--quiet"])
    os._exit(code)


def note_phases(phase: mmap.mmap) -> None:
    methods = ((Trainer, "train_epoch", "epoch"), (RunState, "save", "checkpoint"), (Trainer, "measure", "evaluation"))
    for owner, method, name in methods:
        setattr(owner, method, noting(getattr(owner, method), phase, PHASES.index(name)))


def noting(method: Callable[..., Any], phase: mmap.mmap, number: int) -> Callable[..., Any]:
    def wrapped(*arguments: object) -> object:
        before, phase[0] = phase[0], number
        try:
            return method(*arguments)
        finally:
            phase[0] = before

    return wrapped


def wait_for_training(phase: mmap.mmap) -> None:
    while phase[0] == 0:
        time.sleep(0.0005)


def finish(pid: int) -> None:
    """Wait for a process and require success."""
    _, status = os.waitpid(pid, 0)
    if status:
        raise SystemExit(f"verydeep train failed with {os.waitstatus_to_exitcode(status)}")


def kill_during(pid: int, seconds: float, wanted: int, phase: mmap.mmap) -> bool:
    """Kill the process some milliseconds into the wanted phase, after a delay; False if it ended before."""
    time.sleep(seconds)
    while phase[0] != wanted:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return False
    time.sleep(seconds % 0.005)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def outcome(path: Path) -> dict[str, Any]:
    """Everything that must be equal."""
    run = Run.load(path)
    lines = [replace(line, seconds=0) for line in run.metrics]
    last = max((path / "checkpoint").glob("*.safetensors"))
    weights = (path / "model.safetensors").read_bytes()
    return {"status": run.summary and run.summary.status, "metrics": lines, "weights": weights, "state": tensors(last)}


def tensors(path: Path) -> dict[str, bytes]:
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name).numpy().tobytes() for name in file.keys()}  # noqa: SIM118


def instants(seed: int, length: float) -> Iterator[float]:
    draw = random.Random(seed)
    while True:
        yield draw.uniform(0, length)


def disturb(config: Path, path: Path, instant: float, wanted: int, phase: mmap.mmap) -> str | None:
    """Kill a run once and resume it; returns the phase that the kill hit, or None if it came too late."""
    pid = child([str(config), "--folder", str(path)], phase)
    wait_for_training(phase)
    if not kill_during(pid, instant, wanted, phase):
        return None
    met = PHASES[phase[0]]
    finish(child(["--resume", str(path)], phase))
    return met


def measure(config: Path, kills: int, seed: int) -> dict[str, Any]:
    phase = mmap.mmap(-1, 1)
    with tempfile.TemporaryDirectory() as folder:
        pid = child([str(config), "--folder", f"{folder}/whole"], phase)
        wait_for_training(phase)
        start = time.monotonic()
        finish(pid)
        length = time.monotonic() - start
        whole = outcome(Path(folder) / "whole")
        print(f"undisturbed: {whole['status']} in {length:.1f} s", flush=True)
        trials = []
        random_instants = instants(seed, length)
        while len(trials) < kills:
            path, instant = Path(tempfile.mkdtemp(dir=folder)), next(random_instants)
            met = disturb(config, path, instant, 1 + len(trials) % 3, phase)
            if met is None:
                continue
            found = outcome(path)
            wrong = [name for name in whole if found[name] != whole[name]]
            trials.append({"seconds": round(instant, 3), "during": met, "differs": wrong})
            verdict = f"DIFFERS in {', '.join(wrong)}" if wrong else "identical"
            print(f"{len(trials):3} killed after {instant:6.2f} s, during {met:<14} {verdict}", flush=True)
    during = dict(Counter(trial["during"] for trial in trials))
    identical = sum(not trial["differs"] for trial in trials)
    return {
        "kills": kills,
        "identical": identical,
        "during": during,
        "seconds_undisturbed": round(length, 3),
        "trials": trials,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path, nargs="?", default=ROOT / "benchmarks" / "kill_and_resume.toml")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0, help="seed of the instants")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "kill-and-resume.json")
    options = parser.parse_args()
    result = measure(options.config, options.kills, options.seed)
    facts = {
        "what": "kill -9 at random instants, then --resume: identical to an undisturbed run?",
        **result,
        "seed_of_instants": options.seed,
        "config": to_dict(read_config(options.config)),
    }
    write_result(options.out, facts)
    print(f"{result['identical']} of {result['kills']} identical; killed during {result['during']}; {options.out}")
    return int(result["identical"] != result["kills"])


if __name__ == "__main__":
    sys.exit(main())
