"""Kill processes of a training under torchrun with `kill -9` at random instants, and compare with an undisturbed run.

    python benchmarks/kill_ranks.py                      20 kills of a run with two processes
    python benchmarks/kill_ranks.py --kills 100 --seed 1 --out FILE.json
    python benchmarks/kill_ranks.py --kills 3 --stop 60        and each of the two processes stopped for a minute

The command is `torchrun --nproc-per-node 2 --max-restarts N -m verydeep train ... --folder X --continue`. After every
kill torchrun starts both processes again, and they continue the run. Ranks and instants are random: a third of the
kills come within the first seconds of a start, when processes import, connect and read data. The run is identical if
all metrics (except the seconds) and the saved weights equal those of an undisturbed run bit for bit. In further runs,
each process in turn is stopped with SIGSTOP for a while, as one is that waits for a disk. Then the run must continue
to the same bits, or end within a minute with a message that says why. The exit code is 1 if anything differs.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from _result import write_result

import verydeep
from verydeep.config import to_dict
from verydeep.processes import python_command
from verydeep.training import Run

ROOT = Path(__file__).parents[1]
TRAINING = ["train", "digits", "--validation", "0.2", "--depth", "6", "--width", "20", "--batch-size", "10"]
TRAINING += ["--checkpoint-every", "0"]
STARTING, TRAINED = 6.0, 4.0  # seconds: kills come this long after a start, or after the first new epoch of a start


def start(folder: Path, epochs: int, restarts: int) -> subprocess.Popen[bytes]:
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", "2"]
    torchrun += ["--max-restarts", str(restarts), "-m", "verydeep", *TRAINING, "--epochs", str(epochs)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(verydeep.__file__).parents[1])}
    command = python_command(*torchrun, "--folder", str(folder), "--continue", "--quiet")
    with (folder.parent / f"{folder.name}.log").open("wb") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


def ranks(torchrun: int) -> dict[int, int]:
    """The process of each rank that torchrun has started."""
    children = Path(f"/proc/{torchrun}/task/{torchrun}/children").read_text().split()
    found: dict[int, int] = {}
    for pid in map(int, children):
        try:
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        found |= {int(each.removeprefix(b"RANK=")): pid for each in variables if each.startswith(b"RANK=")}
    return found


def epochs_done(folder: Path) -> int:
    file = folder / "metrics.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def kill_one(process: subprocess.Popen[bytes], folder: Path, draw: random.Random, before: set[int]) -> dict[str, Any]:
    """Kill a random rank of the next start; returns nothing if the training ended before."""
    while len(pids := ranks(process.pid) if process.poll() is None else {}) < 2 or before & set(pids.values()):
        if process.poll() is not None:
            return {}
        time.sleep(0.01)
    before |= set(pids.values())
    done, early, rank = epochs_done(folder), draw.random() < 1 / 3, draw.randrange(2)
    seconds = draw.uniform(0, STARTING if early else TRAINED)
    while not early and epochs_done(folder) == done:
        if process.poll() is not None:
            return {}
        time.sleep(0.01)
    time.sleep(seconds)
    if process.poll() is not None or ranks(process.pid).get(rank) != pids[rank]:
        return {}
    done = epochs_done(folder)
    os.kill(pids[rank], signal.SIGKILL)
    return {"rank": rank, "during": "start" if early else "training", "seconds": round(seconds, 3), "epochs": done}


def stop_one(folder: Path, epochs: int, rank: int, seconds: float, expected: dict[str, Any]) -> dict[str, Any]:
    """Stop a process in the middle of the training for some seconds, and see what becomes of the run."""
    process = start(folder, epochs, 0)
    while epochs_done(folder) < 3 and process.poll() is None:
        time.sleep(0.01)
    pid, began = ranks(process.pid)[rank], time.monotonic()
    os.kill(pid, signal.SIGSTOP)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.kill(pid, signal.SIGCONT)
    continued = time.monotonic()
    code = process.wait()
    found = {"rank": rank, "seconds_stopped": round(continued - began, 1)}
    if code == 0:
        return found | {"ended": "same" if outcome(folder) == expected else "DIFFERS"}
    log = (folder.parent / f"{folder.name}.log").read_text().replace(str(folder.parent), "FOLDER")
    reasons = sorted({line for line in log.splitlines() if line.startswith("verydeep:")})
    seconds_to_end = round(time.monotonic() - continued, 1)
    ended = "said why" if reasons and seconds_to_end < 60 else "DIFFERS"
    return found | {"ended": ended, "seconds_to_end": seconds_to_end, "messages": reasons, "log": log[-1500:]}


def outcome(path: Path) -> dict[str, Any]:
    run = Run.load(path)
    lines = [replace(line, seconds=0) for line in run.metrics]
    return {
        "status": run.summary and run.summary.status,
        "metrics": lines,
        "weights": (path / "model.safetensors").read_bytes(),
    }


def measure(kills: int, seed: int, epochs: int, stop: float) -> dict[str, Any]:
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        whole, killed = Path(folder) / "whole", Path(folder) / "killed"
        if start(whole, epochs, 0).wait():
            raise SystemExit((Path(folder) / "whole.log").read_text())
        process = start(killed, epochs, kills)
        done: list[dict[str, Any]] = []
        seen: set[int] = set()
        while len(done) < kills and (kill := kill_one(process, killed, draw, seen)):
            done.append(kill)
            print(f"{len(done):3} killed rank {kill['rank']} during {kill['during']}: {kill}", flush=True)
        code = process.wait()
        log = (Path(folder) / "killed.log").read_text().replace(str(folder), "FOLDER")
        if code:
            raise SystemExit(log)
        expected, found = outcome(whole), outcome(killed)
        config = to_dict(Run.load(whole).config)
        stops = [
            stop_one(Path(folder) / f"stopped{rank}", epochs, rank, stop, expected) for rank in range(2 if stop else 0)
        ]
    return {
        "kills": len(done),
        "differs": [name for name in expected if found[name] != expected[name]],
        "by_rank": dict(Counter(f"rank {kill['rank']}, {kill['during']}" for kill in done)),
        "messages": sorted({line for line in log.splitlines() if line.startswith("verydeep:")}),
        "trials": done,
        "stopped": stops,
        "config": config,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="seed of ranks and instants")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "benchmarks" / "kill-ranks.json")
    parser.add_argument(
        "--stop", type=float, default=60.0, help="seconds for which each process is stopped; 0 for none"
    )
    options = parser.parse_args()
    result = measure(options.kills, options.seed, options.epochs, options.stop)
    what = "kill -9 of random ranks under torchrun --max-restarts, with --continue: identical to an undisturbed run?"
    write_result(options.out, {"what": what, **result, "seed_of_instants": options.seed})
    verdict = f"DIFFERS in {', '.join(result['differs'])}" if result["differs"] else "identical"
    print(f"{verdict} after {result['kills']} kills ({result['by_rank']}); {options.out}")
    for stopped in result["stopped"]:
        print(f"rank {stopped['rank']} stopped for {stopped['seconds_stopped']} s: {stopped['ended']}")
    wrong = result["differs"] or any(stopped["ended"] == "DIFFERS" for stopped in result["stopped"])
    return int(bool(wrong) or result["kills"] < options.kills)


if __name__ == "__main__":
    sys.exit(main())
