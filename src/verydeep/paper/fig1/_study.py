"""Training for Figure 1, as far as time allows: a study with a group per network.

The recorded trials are what counts. They receive whatever the study's workers have trained, and what they have is not
trained again, even if the study or its runs are lost.
"""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from verydeep.lock import exclusive_lock, is_held
from verydeep.paper._duration import format_duration
from verydeep.paper._train_study import train_study
from verydeep.paper.fig1._halving import eliminated, epochs_left
from verydeep.paper.fig1._protocol import METRIC, NETWORKS, Fig1Network, Protocol, without_halving
from verydeep.paper.fig1._results import Fig1Results
from verydeep.studies import (
    HEARTBEAT,
    Attempts,
    Study,
    StudyProgress,
    TrainingRecord,
    open_study,
    start_study,
)
from verydeep.training import EpochMetrics

_STATUS = {"trained": "paused", "diverged": "diverged"}  # of results, in a study: what is paused can be trained further


@dataclass
class Fig1:
    """The study behind Figure 1.

    Attributes:
        protocol: The stages of training.
        networks: The networks to train; the page shows the others as far as they are trained.
        results: Folder of the recorded trials.
        runs: Folder of the study, with the runs of trials under way.
        workers: Number of workers on this machine, each with one thread; 0 waits for workers elsewhere.
        storage: A PostgreSQL server's address; by default, a journal file in the folder of the runs.
        artifacts: A folder that all machines share, for the weights of the best.
        heartbeat: Seconds between the workers' heartbeats to a server.
        found: The recorded trials of all networks, by name.
    """

    protocol: Protocol
    networks: tuple[Fig1Network, ...]
    results: Path
    runs: Path
    workers: int = 2
    storage: str | None = None
    artifacts: Path | None = None
    heartbeat: int = HEARTBEAT

    def __post_init__(self) -> None:
        self.found = {network.name: Fig1Results(self.results, network, self.protocol) for network in NETWORKS}

    def train(self, root: Path | None, seconds: float | None, progress: StudyProgress) -> None:
        """Train until nothing is left, the user interrupts or time is up.

        Args:
            root: Folder of the known datasets.
            seconds: Time limit; None for no limit.
            progress: What is shown meanwhile.

        Raises:
            UserError: A training failed, or none can be trained here.
        """
        study, only = self.start(), [network.name for network in self.networks]
        for name in only:
            self._tidy(self.found[name])
        train_study(study, only, self._record, self.workers, root, seconds, progress)

    def start(self) -> Study:
        """Start or continue the study, and tell it which trials have been recorded."""
        study = start_study(
            self.runs,
            [self.protocol.group(network) for network in NETWORKS],
            metric=METRIC,
            storage=self.storage,
            artifacts=self.artifacts,
            heartbeat=self.heartbeat,
        )
        with study.store.claiming():
            known = study.attempts()
            for result in self.found.values():
                group = self.protocol.group(result.network)
                for number, trial in result.trials.items():
                    name, status = group.training_name(number), _STATUS[trial.status]
                    if name not in known or not _has(known[name], status, trial.epochs):
                        study.add_result(name, status, trial.metrics)
        return study

    def collect(self) -> None:
        """Record what workers have trained since the last command."""
        if (self.runs / "study.json").exists():
            study = open_study(self.runs, storage=self.storage, heartbeat=self.heartbeat)
            configs = {name: result.config for name, result in self.found.items()}
            same = [group.name for group in study.groups if configs.get(group.name) == replace(group.config, epochs=1)]
            for record in study.records(same):
                self._record(record)

    def time_left(self) -> str:
        """The time left, and what it would be without halving, estimated from the epochs trained so far."""
        protocols, workers = (self.protocol, without_halving(self.protocol)), max(1, self.workers)
        costs = [estimate(list(self.found.values()), protocol, workers) for protocol in protocols]
        rest, whole = (None if cost is None else format_duration(cost) for cost in costs)
        return "no epoch trained yet" if rest is None else f"{rest} left on {workers} cores ({whole} with --strict)"

    def _record(self, record: TrainingRecord) -> None:
        """Add what is new to the results: a trial that has ended or paused, or gone past the end of a stage."""
        if record.has_ended and record.status != "failed":
            self._add(record, "diverged" if record.status == "diverged" else "trained", record.curve)
        elif past := [epoch for epoch in self.protocol.stages.epochs if epoch < len(record.curve)]:
            self._add(record, "trained", record.curve[: past[-1]])

    def _add(self, record: TrainingRecord, status: str, metrics: list[EpochMetrics]) -> None:
        result = self.found[record.group]
        if result.lacks(record.number, status, len(metrics)):
            with exclusive_lock(self.results / ".lock", ""):
                result.read()  # another command may have added it
                if result.lacks(record.number, status, len(metrics)):
                    result.add(record.number, status, metrics)
            self._tidy(result)

    def _tidy(self, result: Fig1Results) -> None:
        """Remove runs and checkpoints that nothing will resume from: 800 runs would fill a disk."""
        group, gone = self.protocol.group(result.network), eliminated(result.trials, self.protocol)
        for number, trial in result.trials.items():
            run = self.runs / group.training_name(number)
            if number in gone and not is_held(run / "lock"):
                shutil.rmtree(run, ignore_errors=True)
            elif trial.epochs >= self.protocol.epochs:
                shutil.rmtree(run / "checkpoint", ignore_errors=True)


def _has(tried: Attempts, status: str, epochs: int) -> bool:
    """Whether the study knows as much about a trial as the results do."""
    if tried.status in (None, "failed"):
        return False
    return tried.status == "diverged" or (status != "diverged" and tried.has_reached(epochs))


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
