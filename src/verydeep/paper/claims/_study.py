"""Training for the experiments, as far as time allows: a study with a group per network.

The results are what counts: what they have is not trained again, even if the study or its runs are lost.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from verydeep.lock import exclusive_lock, is_held
from verydeep.paper._train_study import train_study
from verydeep.paper.claims._experiment import Bar, ClaimExperiment, ClaimSearchOptions
from verydeep.paper.claims._results import ClaimResult, shared_settings
from verydeep.paper.tables._study import StudyOptions
from verydeep.studies import Group, Study, StudyProgress, TrainingRecord, open_study, start_study, storage_errors

_METRIC = "train_loss"
_STATUS = {"finished": "trained", "stopped early": "trained", "diverged": "diverged"}  # of a study, in results
_IN_STUDY = {"trained": "finished", "diverged": "diverged"}


class Claims:
    """Experiments, their results, and the study that trains them.

    Args:
        experiments: The experiments to train.
        results: The folder of all results.
        runs: The folder of the study and its runs.
        quick: Train tiny versions on the digits, to check that everything works.

    Attributes:
        found: The results of these experiments.
    """

    def __init__(
        self, experiments: Sequence[ClaimExperiment], results: Path, runs: Path, *, quick: bool = False
    ) -> None:
        self.results, self.runs, self.quick = results, runs, quick
        self.found = {each.name: ClaimResult(results, each, quick) for each in experiments}

    @storage_errors()
    def train(self, options: StudyOptions, root: Path | None, seconds: float | None, progress: StudyProgress) -> None:
        """Train until nothing is left, the user interrupts or time is up; the cheapest experiment comes first.

        Args:
            options: Where the study is recorded and who trains it.
            root: Folder of the known datasets.
            seconds: Time limit; None for no limit.
            progress: What is shown meanwhile.

        Raises:
            UserError: A training failed, or none can be trained here.
        """
        missing = {name: {_group_name(name, each) for each, _ in found.missing()} for name, found in self.found.items()}
        if any(missing.values()):
            study = self._start(options)
            only = sorted(set().union(*missing.values()))
            train_study(study, only, self._record, options.jobs, root, seconds, progress)

    @storage_errors()
    def search(
        self, options: StudyOptions, root: Path | None, seconds: float | None, progress: StudyProgress, bar: Bar
    ) -> None:
        """Run the searches of experiments that have one, as far as time allows; each has a study of its own.

        Args:
            options: Where the studies are recorded and who trains them.
            root: Folder of the known datasets.
            seconds: Time limit; None for no limit.
            progress: What is shown while it trains.
            bar: Shows the progress of a measurement.

        Raises:
            UserError: A training failed, or none can be trained here.
        """
        for name, result in self.found.items():
            if result.experiment.search is not None and not result.is_measured and seconds != 0:
                runs = self.runs.with_name(f"{self.runs.name}-{name}")
                found = result.experiment.search(
                    ClaimSearchOptions(self.quick, self.results, runs, options, root, seconds, progress, bar)
                )
                if found is not None:
                    result.add_measured(found.numbers, found.seconds)

    @storage_errors()
    def collect(self, options: StudyOptions) -> None:
        """Record what workers have trained since the results were last written."""
        if not (self.runs / "study.json").exists():
            return
        study = open_study(self.runs, storage=options.storage, heartbeat=options.heartbeat)
        configs = {group.name: shared_settings(group.config) for group in self._groups()}
        same = [group.name for group in study.groups if configs.get(group.name) == shared_settings(group.config)]
        for record in study.records(same):
            self._record(record)

    def write(self) -> None:
        """Write what the experiments have found."""
        for result in self.found.values():
            result.write()

    def _groups(self) -> list[Group]:
        return [
            Group(_group_name(name, training.name), training.config, training.seeds)
            for name, result in self.found.items()
            for training in result.trainings.values()
        ]

    def _start(self, options: StudyOptions) -> Study:
        """Start or continue the study, and tell it what the results have and it does not."""
        study = start_study(
            self.runs,
            self._groups(),
            metric=_METRIC,
            storage=options.storage,
            artifacts=options.artifacts,
            heartbeat=options.heartbeat,
            restart_changed=True,
            add_seeds=True,
        )
        with study.store.claiming():
            known = study.attempts()
            for experiment, result in self.found.items():
                for (name, seed), curve in result.curves.items():
                    training = f"{_group_name(experiment, name)}/seed-{seed}"
                    if training not in known:
                        study.add_result(training, _IN_STUDY[curve.status], list(curve.metrics))
        return study

    def _record(self, record: TrainingRecord) -> None:
        """Add a training that has ended to the results; other commands may write them, too."""
        if record.status not in _STATUS:
            return
        experiment, _, name = record.group.partition("/")
        result, run = self.found[experiment], self.runs / record.name
        if (name, record.number) not in result.curves:
            with exclusive_lock(self.results / "claims" / ".lock", ""):
                result.read()
                if result.add(name, record.number, _STATUS[record.status], record.curve, record.environment):
                    result.write()
        if not is_held(run / "lock"):
            shutil.rmtree(run, ignore_errors=True)  # its numbers are recorded, and there are hundreds


def _group_name(experiment: str, training: str) -> str:
    return f"{experiment}/{training}"
