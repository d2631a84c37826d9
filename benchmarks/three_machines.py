"""Train studies on three machines without a shared disk, and compare with one: `python benchmarks/three_machines.py`.

The machines are network namespaces with host names and disks of their own; the only thing they share is a PostgreSQL
server that asks for a password (needs root and Debian's postgresql). A study starts on machine 1, and workers on
machines 2 and 3 join it. While they train six seeds and a search of 24 trials, workers on all machines are killed with
`kill -9` at random instants; one that was killed is started again, as a cluster would do. In another search, network
cables are pulled. Then a teacher and its students are trained on different machines, with a shared folder for weights
and without one. All metrics (except the seconds) and weights must equal those of a single undisturbed machine bit for
bit, and the password must not appear in any file. The result is results/benchmarks/three-machines.json; the exit code
is 1 if anything differs.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _disturbed import HEARTBEAT, Killer, Place, children, is_same, outcome, verydeep
from _machines import Network, missing
from _postgres import Server, installed
from _result import write_result
from optuna.trial import TrialState
from study_kills import KINDS, ROOT, undisturbed

from verydeep.redact import redact

PASSWORD = "gZ7-rosebud-19"
SECONDS = {"seeds": (1.0, 3.0), "search": (0.5, 2.5), "table": (4.0, 8.0)}  # between two kills


class Machine:
    """A machine that runs a command, and again if it was killed."""

    def __init__(self, network: Network, number: int, command: list[str], url: str, shared: bool = False) -> None:
        self.log = network.real_disk(number) / "log.txt"
        self.command = network.on(number, *command, shared=shared)
        self.environment = {**os.environ, "VERYDEEP_STORAGE": url}
        self.start()

    def start(self) -> None:
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def is_running(self) -> bool:
        """Whether the command still runs, after starting it again if it was killed."""
        code = self.process.poll()
        if code == -signal.SIGKILL:
            self.start()
            return True
        assert not code, f"{redact(*self.command)} ended with {code}:\n{self.log.read_text()[-3000:]}"
        return code is None

    def wait(self) -> None:
        while self.is_running():
            time.sleep(0.5)


class Machines:
    """Three machines, a server that they reach, and a study of some kind on them."""

    def __init__(self, network: Network, server: Server, kind: str, name: str) -> None:
        self.network, self.kind, self.url = network, kind, server.new_database()
        self.folder = network.disk / name
        self.study = self.folder / KINDS[kind].study
        disks = [network.real_disk(number) for number in network.machines]
        self.place = Place(tuple(disk / self.study.relative_to(network.disk) for disk in disks), self.url)

    def start_study(self, jobs: int, *options: object, shared: bool = False) -> Machine:
        """Start a study on machine 1, and wait until others can join it; its password is on the command line."""
        command = [*KINDS[self.kind].command(self.folder), "--jobs", str(jobs), "--storage", self.url, *HEARTBEAT]
        machine = Machine(self.network, 1, [*command, *map(str, options)], "", shared)
        while machine.is_running() and not (self.place.folders[0] / "study.json").exists():
            time.sleep(0.2)
        return machine

    def join(self, number: int, *options: object, shared: bool = False) -> Machine:
        """Start a worker on a machine; its password is in the environment."""
        command = verydeep("worker", self.study, *HEARTBEAT, *options)
        return Machine(self.network, number, command, self.url, shared)

    def machines_used(self) -> dict[str, int]:
        """How many trainings each machine has finished."""
        return dict(sorted(Counter(self._hosts(TrialState.COMPLETE)).items()))

    def is_training(self, number: int) -> bool:
        """Whether a machine trains at the moment."""
        return f"machine-{number}" in self._hosts(TrialState.RUNNING)

    def _hosts(self, state: TrialState) -> list[str]:
        trials = [trial for trial in self.place.attempts() if trial.state == state and "worker" in trial.user_attrs]
        return [trial.user_attrs["worker"].rsplit("-", 2)[0] for trial in trials]


def kill_workers(machines: Machines, kills: int) -> dict[str, Any]:
    """Train on all machines and kill workers on all of them."""
    first = machines.start_study(1)
    others = [machines.join(number) for number in (2, 3)]
    killer = Killer(kills, SECONDS[machines.kind])
    killer.run(
        machines.place,
        lambda: [*children(first.process.pid), *(other.process.pid for other in others if other.is_running())],
        lambda: True in [machine.is_running() for machine in (first, *others)],  # all, so that all are started again
    )
    assert killer.killed == kills, f"the study ended after {killer.killed} kills; train for longer"
    return {"kills": kills, "kills_during_training": killer.in_training}


def pull_cables(machines: Machines, times: int) -> dict[str, Any]:
    """Disconnect machines for longer than a worker may be silent: others take their trainings, and they must notice."""
    first = machines.start_study(1)
    others = {number: machines.join(number) for number in (2, 3)}
    chance, everyone, pulled = random.Random(0), (first, *others.values()), 0
    while True in [machine.is_running() for machine in everyone]:
        number = 2 + pulled % 2
        if pulled < times and machines.is_training(number):
            machines.network.set_cable(number, plugged=False)
            time.sleep(chance.uniform(12, 18))
            machines.network.set_cable(number, plugged=True)
            pulled += 1
        time.sleep(1)
    lost = sum(other.log.read_text().count("given to another worker") for other in others.values())
    assert pulled == times, f"the study ended after {pulled} interruptions; train for longer"
    return {"interruptions": pulled, "trainings_taken_over": lost}


def separate(machines: Machines, kills: int, shared: bool) -> dict[str, Any]:
    """Train a teacher on machine 2 and its students on machine 3, where workers are killed; machine 1 waits."""
    options = ("--artifacts", machines.network.shared) if shared else ()
    first = machines.start_study(0, *options, shared=shared)
    machines.join(2, "--only", "maxout-fast", shared=shared).wait()
    last = machines.join(3, shared=shared)
    killer = Killer(kills, SECONDS[machines.kind])
    killer.run(machines.place, lambda: [last.process.pid], last.is_running)
    first.wait()
    again = last.log.read_text().count("trained again")
    assert bool(again) != shared, f"the teacher was trained again {again} times"
    return {"kills": killer.killed, "kills_during_training": killer.in_training, "teacher_trained_again": bool(again)}


def files_with(text: str, folder: Path) -> list[str]:
    """The files below a folder that contain a text."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [str(path.relative_to(folder)) for path in files if text.encode() in path.read_bytes()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--only", choices=KINDS, nargs="+", default=list(KINDS))
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "benchmarks" / "three-machines.json")
    options = parser.parse_args()
    binaries, began = installed(), time.monotonic()
    if lacking := missing() or (None if binaries else "PostgreSQL is not installed: apt-get install postgresql"):
        print(lacking, file=sys.stderr)
        return 2
    assert binaries is not None
    found: dict[str, dict[str, Any]] = {}
    with Network(3) as network, Server(binaries, network.address, PASSWORD) as server:
        expected = {kind: undisturbed(kind, network.folder / "calm" / kind) for kind in options.only}
        ways: dict[str, tuple[str, Callable[[Machines], dict[str, Any]]]] = {
            "seeds": ("seeds", lambda machines: kill_workers(machines, options.kills)),
            "search": ("search", lambda machines: kill_workers(machines, options.kills)),
            "search, cables pulled": ("search", lambda machines: pull_cables(machines, 3)),
            "teacher elsewhere, shared folder": ("table", lambda machines: separate(machines, 3, True)),
            "teacher elsewhere, nothing shared": ("table", lambda machines: separate(machines, 3, False)),
        }
        for number, (way, (kind, run)) in enumerate(ways.items()):
            if kind in options.only:
                machines = Machines(network, server, kind, str(number))
                compared = run(machines) | outcome(machines.place).compared(expected[kind])
                found[way] = compared | {"trainings_by_machine": machines.machines_used()}
                print(f"{way}: {json.dumps(found[way])}", flush=True)
        leaks = files_with(PASSWORD, network.folder)
    found_all = {"machines": 3, **found, "files_with_password": leaks, "seconds": round(time.monotonic() - began)}
    write_result(options.out, found_all)
    return 0 if all(map(is_same, found.values())) and not leaks else 1


if __name__ == "__main__":
    sys.exit(main())
