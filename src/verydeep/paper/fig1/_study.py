"""Training for Figure 1, as far as time allows; recorded trials are never trained again."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from verydeep.lock import exclusive_lock
from verydeep.paper._duration import format_duration
from verydeep.paper._jobs import Job, Outcome, train_jobs
from verydeep.paper.fig1._halving import Fig1Task, eliminated, epochs_left, open_tasks
from verydeep.paper.fig1._protocol import Fig1Network, Protocol, without_halving
from verydeep.paper.fig1._results import Fig1Results
from verydeep.training import Interrupt


@dataclass
class Fig1:
    """The study behind Figure 1.

    Attributes:
        protocol: The stages of training.
        networks: The networks to train; the page shows the others as far as they are trained.
        results: Folder of the recorded trials.
        runs: Folder of the runs of trials under way.
        workers: Number of processes, each with one thread.
    """

    protocol: Protocol
    networks: tuple[Fig1Network, ...]
    results: Path
    runs: Path
    workers: int = 2

    def read(self, networks: tuple[Fig1Network, ...] | None = None) -> list[Fig1Results]:
        """The recorded trials of some networks; by default, of those to train."""
        return [Fig1Results(self.results, network, self.protocol) for network in networks or self.networks]

    def train(self, root: Path | None, interrupt: Interrupt, seconds: float | None) -> Iterator[tuple[Fig1Task, str]]:
        """Train; yields each trial as it ends, with a line on its result and on the time left."""
        with ExitStack() as locks:
            for network in self.networks:
                busy = f"{network.name} is being trained by another process"
                locks.enter_context(exclusive_lock(self.runs / f"{network.name}.lock", busy, wait=False))
            results = {result.network: result for result in self.read()}
            taken: dict[Path, Fig1Task] = {}

            def next_job() -> Job | None:
                task = next(open_tasks(list(results.values()), self.protocol, taken.values()), None)
                if task is None:
                    return None
                path = self._path(task)
                taken[path] = task
                return Job(self.protocol.config(task.network, task.trial), path, task.epochs)

            for job, outcome in train_jobs(next_job, self.workers, root, interrupt, seconds):
                task = taken.pop(job.path)
                if outcome.status != "killed":
                    results[task.network].add(task.trial, outcome.status, outcome.metrics)
                    self._tidy(results[task.network], task)
                yield task, _message(task, outcome) + f"; {self.time_left(list(results.values()))}"

    def time_left(self, results: list[Fig1Results]) -> str:
        """The time left, and what it would be without halving, estimated from the epochs trained so far."""
        protocols = (self.protocol, without_halving(self.protocol))
        costs = [estimate(results, protocol, self.workers) for protocol in protocols]
        rest, whole = (None if cost is None else format_duration(cost) for cost in costs)
        return (
            "no epoch trained yet" if rest is None else f"{rest} left on {self.workers} cores ({whole} with --strict)"
        )

    def _path(self, task: Fig1Task) -> Path:
        return self.runs / task.network.name / f"{task.trial:04}"

    def _tidy(self, result: Fig1Results, task: Fig1Task) -> None:
        """Remove runs and checkpoints that nothing will resume from: 800 runs would fill a disk."""
        for number in eliminated(result.trials, self.protocol):
            shutil.rmtree(self.runs / task.network.name / f"{number:04}", ignore_errors=True)
        if result.trials[task.trial].epochs >= self.protocol.epochs:
            shutil.rmtree(self._path(task) / "checkpoint", ignore_errors=True)


def epoch_seconds(result: Fig1Results) -> float | None:
    """Seconds per epoch on one core, from the longest trials: in short ones start-up counts too much."""
    longest = max((trial.epochs for trial in result.trials.values()), default=0)
    times = [trial.seconds / longest for trial in result.trials.values() if trial.epochs == longest]
    return median(times) if longest else None


def estimate(results: list[Fig1Results], protocol: Protocol, workers: int) -> float | None:
    """Seconds that the rest of a protocol takes; an untrained network is estimated from its depth."""
    known = {result.network: seconds for result in results if (seconds := epoch_seconds(result)) is not None}
    if not known:
        return None
    layer = median(seconds / network.depth for network, seconds in known.items())
    total = sum(
        epochs_left(result.trials, protocol) * known.get(result.network, layer * result.network.depth)
        for result in results
    )
    return total / workers


def _message(task: Fig1Task, outcome: Outcome) -> str:
    name = f"{task.network.name} trial {task.trial}"
    if outcome.status == "killed":
        return f"{name}: its process was killed; another one resumes it"
    epochs = f"{len(outcome.metrics)} epoch{'' if len(outcome.metrics) == 1 else 's'}"
    if outcome.status == "diverged":
        return f"{name}: diverged after {epochs}"
    return f"{name}: training loss {outcome.metrics[-1].train_loss:.4g} after {epochs}"
