"""Training for Figure 1, as far as time allows; what is in the results is never trained again."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from verydeep.lock import exclusive_lock
from verydeep.paper._duration import hours
from verydeep.paper._jobs import Job, Outcome, train_jobs
from verydeep.paper.fig1._halving import Task, eliminated, epochs_left, tasks
from verydeep.paper.fig1._protocol import Network, Protocol, strict
from verydeep.paper.fig1._trials import Results
from verydeep.training import Interrupt


@dataclass
class Fig1:
    """The study.

    Attributes:
        protocol: How long what is trained.
        networks: Which are trained; the others are shown as far as they are.
        results: Where curves are kept.
        runs: Where the runs of trials under way are.
        workers: Processes of one thread.
    """

    protocol: Protocol
    networks: tuple[Network, ...]
    results: Path
    runs: Path
    workers: int = 2

    def read(self, networks: tuple[Network, ...] | None = None) -> list[Results]:
        """What there is of some networks; of those that are trained unless given."""
        return [Results(self.results, network, self.protocol) for network in networks or self.networks]

    def train(self, root: Path | None, interrupt: Interrupt, seconds: float | None) -> Iterator[tuple[Task, str]]:
        """Train; tell of every trial what came of it and what is left."""
        with ExitStack() as held:
            for network in self.networks:
                busy = f"{network.name} is being trained by another process"
                held.enter_context(exclusive_lock(self.runs / f"{network.name}.lock", busy, wait=False))
            found = {result.network: result for result in self.read()}
            taken: dict[Path, Task] = {}

            def next_job() -> Job | None:
                task = next(tasks(list(found.values()), self.protocol, taken.values()), None)
                if task is None:
                    return None
                path = self._path(task)
                taken[path] = task
                return Job(self.protocol.config(task.network, task.trial), path, task.epochs)

            for job, outcome in train_jobs(next_job, self.workers, root, interrupt, seconds):
                task = taken.pop(job.path)
                if outcome.status != "killed":
                    found[task.network].add(task.trial, outcome.status, outcome.metrics)
                    self._tidy(found[task.network], task)
                yield task, _told(task, outcome) + f"; {self.left(list(found.values()))}"

    def left(self, found: list[Results]) -> str:
        """What the rest costs, and what the strict protocol would, from the epochs measured so far."""
        costs = [estimate(found, protocol, self.workers) for protocol in (self.protocol, strict(self.protocol))]
        rest, whole = (None if cost is None else hours(cost) for cost in costs)
        return (
            "no epoch measured yet" if rest is None else f"{rest} left on {self.workers} cores ({whole} with --strict)"
        )

    def _path(self, task: Task) -> Path:
        return self.runs / task.network.name / f"{task.trial:04}"

    def _tidy(self, result: Results, task: Task) -> None:
        """Remove what nobody will go on from: 800 runs would fill a disk."""
        for number in eliminated(result.trials, self.protocol):
            shutil.rmtree(self.runs / task.network.name / f"{number:04}", ignore_errors=True)
        if result.trials[task.trial].epochs >= self.protocol.epochs:
            shutil.rmtree(self._path(task) / "checkpoint", ignore_errors=True)


def epoch_seconds(result: Results) -> float | None:
    """What an epoch of a network takes one core, by the longest trials: in short ones the start counts too much."""
    longest = max((trial.epochs for trial in result.trials.values()), default=0)
    times = [trial.seconds / longest for trial in result.trials.values() if trial.epochs == longest]
    return median(times) if longest else None


def estimate(found: list[Results], protocol: Protocol, workers: int) -> float | None:
    """Seconds that the rest of a protocol takes; a network not measured yet counts by its depth."""
    known = {result.network: seconds for result in found if (seconds := epoch_seconds(result)) is not None}
    if not known:
        return None
    layer = median(seconds / network.depth for network, seconds in known.items())
    total = sum(
        epochs_left(result.trials, protocol) * known.get(result.network, layer * result.network.depth)
        for result in found
    )
    return total / workers


def _told(task: Task, outcome: Outcome) -> str:
    name = f"{task.network.name} trial {task.trial}"
    if outcome.status == "killed":
        return f"{name}: its process was killed, so it goes on in another"
    if outcome.status == "diverged":
        return f"{name}: diverged after {len(outcome.metrics)} epochs"
    return f"{name}: training loss {outcome.metrics[-1]['train_loss']:.4g} after {len(outcome.metrics)} epochs"
