"""Disturb studies and compare their results with undisturbed ones: `python benchmarks/study_kills.py [--kills 20]`.

Workers of six seeds, of a search and of a table of the paper (students and their teacher) are killed with `kill -9` at
random instants, with a journal file and with a PostgreSQL server from Debian's packages. During a search, the server
itself is killed and started again, and so is the command. Someone presses Ctrl-C on seeds while the server is down, and
continues later. No training may be lost or counted twice, and all metrics (except the seconds), runs and weights must
equal those of undisturbed studies bit for bit. The result is results/benchmarks/study-kills.json; the exit code is 1 if
anything differs.
"""

import argparse
import json
import os
import random
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _disturbed import (
    HEARTBEAT,
    MOST_DEATHS,
    Killer,
    Outcome,
    Place,
    children,
    is_same,
    outcome,
    run_command,
    table_results,
    verydeep,
)
from _postgres import Server, installed
from _result import write_result

ROOT = Path(__file__).parents[1]
TRAIN = shlex.split("digits --seeds 6 --width 16 --depth 20 --epochs 30 --checkpoint-every 0 --continue")
SERVER_KILLS, COMMAND_KILLS = 5, 3
ROWS = "maxout,fitnet-a-hints,fitnet-a,highway-a"


@dataclass(frozen=True)
class Kind:
    """A kind of study.

    Attributes:
        command: The command that makes or continues it, given a folder to work in.
        study: The study's folder in there.
        seconds: The shortest and the longest time between two kills.
    """

    command: Callable[[Path], list[str]]
    study: str
    seconds: tuple[float, float]


def seeds(folder: Path) -> list[str]:
    return verydeep("train", *TRAIN, "--folder", folder / "seeds", "--quiet")


def search(folder: Path) -> list[str]:
    return verydeep("search", Path(__file__).with_suffix(".toml"), "--study", folder / "search", "--quiet")


def table(folder: Path) -> list[str]:
    places = ("--results", folder / "results", "--runs", folder / "runs")
    return verydeep("reproduce", "table2", "--quick", "--only", ROWS, "--seeds", "2", *places)


KINDS = {
    "seeds": Kind(seeds, "seeds", (1.0, 4.0)),
    "search": Kind(search, "search", (0.5, 4.0)),
    "table": Kind(table, "runs/tables", (2.0, 6.0)),
}


class Command:
    """A command that trains a study with two workers, and that can be disturbed."""

    def __init__(self, kind: str, folder: Path, url: str | None = None) -> None:
        self.kind, self.place = KINDS[kind], Place((folder / KINDS[kind].study,), url)
        storage = ["--storage", url, *HEARTBEAT] if url else []
        self.command = [*self.kind.command(folder), "--jobs", "2", *storage]

    def start(self) -> None:
        self.process = run_command(self.command)

    def end(self, code: int = 0) -> None:
        """Wait for the end and require an exit code."""
        printed = self.process.communicate()[0]
        assert self.process.returncode == code, f"{self.command}: {self.process.returncode}\n{printed[-3000:]}"

    def is_running(self) -> bool:
        return self.process.poll() is None

    def workers(self) -> list[int]:
        return children(self.process.pid)

    def wait_for_epochs(self, epochs: int) -> None:
        """Wait until the study has recorded some epochs."""
        while self.is_running() and not (self.workers() and self.place.epochs() >= epochs):
            time.sleep(0.2)


def undisturbed(kind: str, folder: Path) -> Outcome:
    """Train a study without disturbing it."""
    command = Command(kind, folder)
    command.start()
    command.end()
    return outcome(command.place)


def kill_workers(command: Command, kills: int) -> dict[str, Any]:
    """Kill workers at random instants."""
    command.start()
    killer = Killer(kills, command.kind.seconds)
    killer.run(command.place, command.workers, command.is_running)
    command.end()
    assert killer.killed == kills, f"the study ended after {killer.killed} kills; train for longer"
    return {"kills": kills, "kills_during_training": killer.in_training}


def kill_server(command: Command, server: Server, chance: random.Random) -> dict[str, Any]:
    """Kill the server at random instants, sometimes a worker with it, and start it again a little later."""
    command.start()
    command.wait_for_epochs(3)
    kills = killed = 0
    while command.is_running() and kills < SERVER_KILLS:
        server.stop()
        kills += 1
        # Not more often: they might all die over the same training, which the study then gives up, by design.
        if killed < MOST_DEATHS - 1 and kills % 2 and (workers := command.workers()):
            os.kill(chance.choice(workers), signal.SIGKILL)
            killed += 1
        time.sleep(chance.uniform(0.5, 8.0))
        server.start()
        time.sleep(chance.uniform(2.0, 5.0))
    command.end()
    return {"kills": kills, "workers_killed_meanwhile": killed}


def stop_without_server(command: Command, server: Server) -> dict[str, Any]:
    """Press Ctrl-C while the server is down, then continue."""
    command.start()
    command.wait_for_epochs(3)
    workers = command.workers()
    server.stop()
    time.sleep(3)
    began = time.monotonic()
    command.process.send_signal(signal.SIGINT)
    command.end(130)
    seconds = round(time.monotonic() - began, 1)
    left = sum(Path(f"/proc/{pid}").exists() for pid in workers)
    server.start()
    finished = len(outcome(command.place).results)
    command.start()
    command.end()
    return {"seconds_to_stop": seconds, "workers_left": left, "trainings_finished_before": finished}


def kill_command(command: Command) -> dict[str, Any]:
    """Kill the command that has started the workers, and continue at once, while they save and leave."""
    for kill in range(COMMAND_KILLS):
        command.start()
        command.wait_for_epochs(3 if kill == 0 else command.place.epochs() + 3)
        command.process.kill()
        command.end(-signal.SIGKILL)
    command.start()
    command.end()
    return {"kills": COMMAND_KILLS}


def disturb(kind: str, folder: Path, server: Server, kills: int) -> dict[str, dict[str, Any]]:
    """Disturb a kind of study in several ways."""
    expected, found = undisturbed(kind, folder / "calm"), {}
    ways: dict[str, tuple[str | None, Callable[[Command], dict[str, Any]]]] = {
        "workers killed, journal file": (None, lambda command: kill_workers(command, kills)),
        "workers killed, PostgreSQL": (server.new_database(), lambda command: kill_workers(command, kills)),
    }
    if kind == "seeds":
        ways["Ctrl-C without server"] = (server.new_database(), lambda command: stop_without_server(command, server))
    if kind == "search":
        ways["server killed"] = (server.new_database(), lambda command: kill_server(command, server, random.Random(0)))
        ways["command killed"] = (None, kill_command)
    for number, (way, (url, run)) in enumerate(ways.items()):
        command = Command(kind, folder / str(number), url)
        found[way] = run(command) | outcome(command.place).compared(expected)
        if kind == "table":
            results = [table_results(folder / name / "results") for name in ("calm", str(number))]
            found[way]["same_table"] = bool(results[0]) and results[0] == results[1]
        print(f"{kind}, {way}: {json.dumps(found[way])}", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--only", choices=KINDS, nargs="+", default=list(KINDS))
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "benchmarks" / "study-kills.json")
    options = parser.parse_args()
    binaries, began = installed(), time.monotonic()
    if binaries is None:
        print("PostgreSQL is not installed: apt-get install postgresql", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder, Server(binaries) as server:
        found = {kind: disturb(kind, Path(folder) / kind, server, options.kills) for kind in options.only}
    write_result(options.out, {"kills": options.kills, **found, "seconds": round(time.monotonic() - began)})
    return 0 if all(is_same(compared) for ways in found.values() for compared in ways.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
