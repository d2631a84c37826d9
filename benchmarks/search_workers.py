"""Kill workers of a search at random instants: `python benchmarks/search_workers.py [--kills 20] [--trials 24]`.

Runs once with the journal file and once with a PostgreSQL server from Debian's packages. Every trial must be completed,
none lost and none counted twice, and every curve must equal that of an undisturbed search. The result is
results/benchmarks/search-workers.json.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "search"))

from _postgres import Server, installed  # noqa: E402
from _result import write_result  # noqa: E402

from verydeep.processes import python_command  # noqa: E402
from verydeep.search import open_study, records  # noqa: E402

CONFIG = """
epochs = 8
batch_size = 50
checkpoint_every = 0.0
data = {{ source = "digits", validation = 0.2 }}

[search]
trials = {trials}

[search.space]
optim.lr = {{ low = 0.01, high = 1.0, log = true }}
model.depth = {{ low = 5, high = 20 }}
model.gate_bias = {{ low = -5.0, high = -1.0 }}
"""


def search(file: Path, folder: Path, storage: str | None, kills: int) -> int:
    """Run the command with two workers, kill one at random instants, and return the number of kills."""
    more = ["--storage", storage, "--heartbeat", "1"] if storage else []
    command = python_command("-m", "verydeep", "search", str(file), "--study", str(folder), "--jobs", "2", *more)
    process, chance, killed = subprocess.Popen([*command, "--quiet"]), random.Random(0), 0
    while process.poll() is None:
        time.sleep(chance.uniform(0.5, 4.0))
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        workers = [int(pid) for pid in children.read_text().split()] if children.exists() else []
        if killed < kills and workers:
            os.kill(chance.choice(workers), signal.SIGKILL)
            killed += 1
    assert process.returncode == 0, f"the search ended with {process.returncode}"
    return killed


def outcome(folder: Path, storage: str | None) -> dict[str, Any]:
    study = open_study(folder, storage)
    counted = Counter(trial.user_attrs["setting"] for trial in study.optuna.get_trials() if trial.value is not None)
    found = records(study)
    return {
        "trials": len(found),
        "complete": sum(record.status == "finished" for record in found),
        "lost": sum(counted[number] == 0 for number in range(len(found))),
        "counted_twice": sum(count > 1 for count in counted.values()),
        "begun_again": sum(record.attempts - 1 for record in found),
        "curves": [[line.valid_loss for line in record.curve] for record in found],
    }


def measured(folder: Path, file: Path, storage: str | None, kills: int, calm: dict[str, Any]) -> dict[str, Any]:
    killed = search(file, folder, storage, kills)
    found = outcome(folder, storage)
    same = sum(a == b for a, b in zip(found.pop("curves"), calm["curves"], strict=True))
    return {"kills": killed, **found, "curves_as_undisturbed": same}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "benchmarks" / "search-workers.json")
    options = parser.parse_args()
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        file = folder / "search.toml"
        file.write_text(CONFIG.format(trials=options.trials))
        search(file, folder / "calm", None, 0)
        calm, found = outcome(folder / "calm", None), {}
        found["journal"] = measured(folder / "journal", file, None, options.kills, calm)
        if binaries := installed():
            server = held.enter_context(Server(binaries))
            found["postgresql"] = measured(folder / "server", file, server.url, options.kills, calm)
        else:
            print("PostgreSQL is not installed: apt-get install postgresql", file=sys.stderr)
    write_result(options.out, {"kills": options.kills, "trials": options.trials, **found})
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
