"""Studies that are disturbed on purpose, and the comparison of their results with those of undisturbed ones.

Results are read from the storage, with Optuna alone, and from the folders of the runs.
"""

import atexit
import hashlib
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.pool import NullPool

from verydeep.processes import python_command

MOST_DEATHS = 3  # over one training without progress: the study then gives it up, by design
HEARTBEAT = ("--heartbeat", "3")  # workers that are silent four times as long count as dead; machines may be busy
_TIMES = ("seconds", "date", "environment")
TRAINING = 0.8  # of the kills are for workers that train, because starting one takes as long as a short training


def verydeep(*arguments: object) -> list[str]:
    """The command line of a verydeep command."""
    return python_command("-m", "verydeep", *map(str, arguments))


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


@dataclass(frozen=True)
class Place:
    """Where a study is: its folder on every machine that works on it, and a server's address unless it is a journal."""

    folders: tuple[Path, ...]
    url: str | None = None

    def attempts(self) -> list[FrozenTrial]:
        """Every attempt at a training, oldest first."""
        storage: JournalStorage | RDBStorage
        if self.url is None:
            storage = JournalStorage(JournalFileBackend(str(self.folders[0] / "journal.log")))
        else:
            url = self.url.replace("postgresql:", "postgresql+psycopg:")
            engine = {"poolclass": NullPool}
            storage = RDBStorage(url, engine, skip_compatibility_check=True, skip_table_creation=True)
        return optuna.load_study(study_name=self.folders[0].name, storage=storage).get_trials(deepcopy=False)

    def epochs(self) -> int:
        """The number of epochs that have been recorded."""
        return sum(len(_metrics(trial)) for trial in self.attempts())


@dataclass(frozen=True)
class Result:
    """How a training ended, without times: by the storage, and by the folder of its run.

    Attributes:
        status: Such as finished.
        reason: Why it failed, if it did.
        metrics: Those of every epoch.
        files: The metrics, the summary and digests of the weights in the folder.
    """

    status: str
    reason: str
    metrics: tuple[dict[str, Any], ...]
    files: dict[str, Any]


@dataclass
class Outcome:
    """What has become of the trainings of a study."""

    results: dict[str, Result] = field(default_factory=dict)
    complete: Counter[str] = field(default_factory=Counter)
    attempts: int = 0

    def compared(self, calm: "Outcome") -> dict[str, Any]:
        """How many trainings there are, and how many of them are as in an undisturbed study."""
        names = calm.results.keys() | self.results.keys() | self.complete.keys()
        pairs = [(self.results.get(name), calm.results.get(name)) for name in sorted(names)]
        both = [(found, expected) for found, expected in pairs if found and expected]
        different = [name for name in sorted(names) if self.results.get(name) != calm.results.get(name)]
        return {
            "trainings": len(names),
            "lost": sum(self.complete[name] == 0 for name in names),
            "counted_twice": sum(self.complete[name] > 1 for name in names),
            "same_metrics": sum(
                (found.status, found.metrics) == (other.status, other.metrics) for found, other in both
            ),
            "same_runs_and_weights": sum(found.files == other.files for found, other in both),
            "attempts": self.attempts,
            **({"different": {name: self.described(name) for name in different}} if different else {}),
        }

    def described(self, name: str) -> str:
        """How a training ended, for people who want to know why it is different."""
        result = self.results.get(name)
        return f"{result.status} after {len(result.metrics)} epochs: {result.reason}" if result else "no result"


def is_same(compared: dict[str, Any]) -> bool:
    """Whether a comparison found no difference."""
    whole = compared["trainings"]
    same = compared["same_metrics"] == compared["same_runs_and_weights"] == whole > 0
    return bool(same and compared["lost"] == compared["counted_twice"] == 0 and compared.get("same_table", True))


def outcome(place: Place) -> Outcome:
    """Read what has become of the trainings of a study."""
    found = Outcome()
    for trial in place.attempts():
        name = trial.user_attrs["training"]
        found.attempts += 1
        if trial.state == TrialState.COMPLETE:
            found.complete[name] += 1
            result = json.loads(trial.user_attrs["result"])
            files = _files(name, place.folders)
            found.results[name] = Result(result["status"], result.get("reason", ""), _metrics(trial), files)
    return found


def _metrics(trial: FrozenTrial) -> tuple[dict[str, Any], ...]:
    epochs: dict[int, dict[str, Any]] = {}
    for key, text in sorted(trial.user_attrs.items()):  # metrics:N last, which replace what was reported before
        kind, _, first = key.partition(":")
        if kind in ("epochs", "metrics"):
            lines = json.loads(text)["curve"] if kind == "epochs" else [json.loads(text)]
            epochs |= dict(enumerate(lines, int(first)))
    return tuple(_without_times(epochs[epoch]) for epoch in sorted(epochs))


def _files(name: str, folders: Iterable[Path]) -> dict[str, Any]:
    """The files of a run; if several machines have trained it to the end, they must have the same."""
    found: list[dict[str, Any]] = []
    for folder in folders:
        run = folder / name
        if not (run / "summary.json").exists():
            continue
        metrics = [_without_times(json.loads(line)) for line in (run / "metrics.jsonl").read_text().splitlines()]
        summary = _without_times(json.loads((run / "summary.json").read_text()))
        weights = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in run.glob("*.safetensors")}
        found.append({"metrics": metrics, "summary": summary, "weights": weights})
    return found[0] if found and all(files == found[0] for files in found) else {"copies": len(found)}


def table_results(folder: Path) -> dict[str, Any]:
    """The results of the rows of a table, without times."""
    return {file.name: _without_times(json.loads(file.read_text())) for file in sorted(folder.rglob("*-fast.json"))}


def _without_times(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, list):
        return [_without_times(each) for each in value]
    if isinstance(value, dict):
        return {key: _without_times(each) for key, each in value.items() if key not in _TIMES}
    return value


class Killer:
    """Kills workers with `kill -9` at random instants.

    Args:
        kills: How often.
        seconds: The shortest and the longest time between two kills.
        seed: The seed of the instants and of the choice of workers.

    Attributes:
        killed: How many workers it has killed.
        in_training: How many of them were training.
    """

    def __init__(self, kills: int, seconds: tuple[float, float], seed: int = 0) -> None:
        self.kills, self.seconds, self.chance = kills, seconds, random.Random(seed)
        self.killed = self.in_training = 0

    def run(self, place: Place, workers: Callable[[], list[int]], is_running: Callable[[], bool]) -> None:
        """Kill workers until the study ends."""
        while is_running():
            time.sleep(self.chance.uniform(*self.seconds))
            found = [pid for pid in workers() if _is_alive(pid)]
            if self.killed < self.kills and found:
                self._kill(found, place.attempts())

    def _kill(self, workers: list[int], attempts: list[FrozenTrial]) -> None:
        """Kill one of the workers; spare those whose training would be given up, and often those that are starting."""
        by_training: dict[str, list[FrozenTrial]] = {}
        for trial in attempts:
            by_training.setdefault(trial.user_attrs["training"], []).append(trial)
        training: dict[int, str] = {}
        endangered = set()
        for name, tried in by_training.items():
            training |= {pid: name for trial in tried if (pid := _worker(trial)) in workers}
            if _deaths(tried, workers) >= MOST_DEATHS - 1:
                endangered.add(name)
        if self.chance.random() < TRAINING:
            workers = [pid for pid in workers if pid in training]
        # A worker without a training may be about to claim one that is endangered.
        waiting = endangered - set(training.values())
        allowed = [pid for pid in workers if (training[pid] not in endangered if pid in training else not waiting)]
        if allowed:
            pid = self.chance.choice(allowed)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.killed += 1
                self.in_training += pid in training


def _is_alive(pid: int) -> bool:
    """Whether a process runs: one that was killed stays in the list of processes until its parent has noticed."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def _worker(trial: FrozenTrial) -> int | None:
    """The process that trains, if there is one."""
    is_running = trial.state == TrialState.RUNNING and "worker" in trial.user_attrs
    return int(trial.user_attrs["worker"].split("-")[-2]) if is_running else None


def _deaths(attempts: list[FrozenTrial], workers: list[int]) -> int:
    """How often a training has died since it last got further."""
    count, reached = 0, 0.0
    for trial in attempts:
        got = max(*trial.intermediate_values, 0, trial.user_attrs.get("from", 0.0))
        if got > reached:
            count, reached = 0, got
        is_dead = trial.state == TrialState.RUNNING and _worker(trial) not in workers
        count += is_dead or (trial.state == TrialState.FAIL and not trial.user_attrs.get("left"))
    return count


def run_command(command: list[str]) -> subprocess.Popen[str]:
    """Start a command without a terminal, which ends with this process; `communicate` returns what it has printed."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    atexit.register(process.kill)
    return process
