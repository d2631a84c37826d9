"""Training for the tables, as far as time allows: a study with a group per row and recipe.

The results are what counts. They receive every epoch that the study reports, whichever worker has trained it, and what
they have is not trained again, even if the study or its runs are lost.
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from verydeep.data import DataConfig
from verydeep.errors import UserError
from verydeep.lock import exclusive_lock
from verydeep.paper._recipes import Recipe, read_recipe
from verydeep.paper._train_study import train_study
from verydeep.paper.tables._results import TableResult, shared
from verydeep.paper.tables._rows import TEACHER, TableRow
from verydeep.studies import (
    Group,
    Study,
    StudyProgress,
    TrainingRecord,
    open_study,
    start_study,
    storage_errors,
)
from verydeep.training import TrainConfig

_QUICK_EPOCHS = 2
_METRIC = "loss"  # nothing is selected by it; the recipes have no validation data
_STATUS = {"trained": "finished", "diverged": "diverged", "training": "paused"}  # of results, in a study


@dataclass(frozen=True)
class StudyOptions:
    """Where the study is recorded and who trains it.

    Attributes:
        jobs: Number of workers on this machine; 0 waits for workers elsewhere.
        storage: A PostgreSQL server's address; by default, a journal file in the folder of the runs.
        artifacts: A folder that all machines share, for the weights of teachers.
        heartbeat: Seconds between the workers' heartbeats to a server.
    """

    jobs: int = 2
    storage: str | None = None
    artifacts: Path | None = None
    heartbeat: int = 15


class Tables:
    """Rows of the tables, their results, and the study that trains them.

    A row with hints learns from a teacher, which must be trained to its end first; it becomes part of the study even if
    it is not among the rows.

    Args:
        rows: The rows to train.
        recipe: Which of their recipes.
        results: Folder of the results.
        runs: Folder of the study and its runs.
        seeds: Which seeds; by default, as many as the paper reports.
        epochs: Stop after this many epochs of the recipe; by default, at its end.
        threads: Number of threads per worker.
        quick: Train for a moment on the digits, to check that everything works.

    Attributes:
        configs: The settings of every row, and of the teacher if there are rows with hints.
        found: The results of these rows.
        refused: The rows that have results of other settings, which are left alone.
    """

    def __init__(
        self,
        rows: Iterable[TableRow],
        recipe: Recipe,
        results: Path,
        runs: Path,
        seeds: tuple[int, ...] | None = None,
        epochs: int | None = None,
        threads: int = 1,
        quick: bool = False,
    ) -> None:
        self.rows = tuple(row for row in rows if row.quick or not quick)
        self.recipe, self.results, self.runs, self.seeds, self.epochs = recipe, results, runs, seeds, epochs
        self.threads, self.quick = threads, quick
        self.configs = {row: self._config(row) for row in self.rows}
        if any(map(self.has_teacher, self.rows)):
            self.configs.setdefault(TEACHER, self._config(TEACHER))
        self.found = {row: TableResult(results, row, recipe) for row in self.configs}
        self.refused = [row for row, config in self.configs.items() if not self.found[row].fits(config)]
        for row in self.configs.keys() - self.refused:
            self.found[row].start(self.configs[row])

    @storage_errors()
    def train(
        self, options: StudyOptions, root: Path | None, seconds: float | None, progress: StudyProgress
    ) -> dict[str, str]:
        """Train until nothing is left, the user interrupts or time is up.

        Args:
            options: Where the study is recorded and who trains it.
            root: Folder of the known datasets.
            seconds: Time limit; None for no limit.
            progress: What is shown meanwhile.

        Returns:
            The names of students that cannot be trained because their teacher is not, and the reason.

        Raises:
            UserError: A row has results of other settings and there are no other rows, or a training failed.
        """
        if self.refused and not set(self.rows) - set(self.refused):
            raise UserError(self.found[self.refused[0]].refusal)
        missing = self.missing()
        if not missing:
            return {}
        study = self._start(missing, options)
        only = [self._training_name(row, seed) for row, seed in missing]
        if train_study(study, only, self._record, options.jobs, root, seconds, progress):
            return {}
        return {task.name: task.reason for task in study.tasks(only) if task.state == "done" and task.reason}

    @storage_errors()
    def collect(self, options: StudyOptions) -> None:
        """Record what workers have trained since the results were last written."""
        if not (self.runs / "study.json").exists():
            return
        study = open_study(self.runs, storage=options.storage, heartbeat=options.heartbeat)
        configs = {self._group_name(row): shared(config) for row, config in self.configs.items()}
        same = [group.name for group in study.groups if configs.get(group.name) == shared(group.config)]
        for record in study.records(same):
            self._record(record)

    def missing(self) -> list[tuple[TableRow, int]]:
        """The seeds that lack epochs or, with all of them, a status; after the teacher, if one is missing that way."""
        missing = [(row, seed) for row in self.rows for seed in self._seeds(row) if self._lacks_something(row, seed)]
        if any(self.has_teacher(row) for row, _ in missing) and self._lacks_something(TEACHER, 0):
            missing = [(TEACHER, 0), *(each for each in missing if each != (TEACHER, 0))]
        return missing

    def epochs_left(self, row: TableRow, seed: int) -> int:
        """Number of epochs that the results of a seed still need."""
        whole = self.configs[row].epochs
        return self.found[row].epochs_left(seed, min(self.epochs or whole, whole))

    def has_teacher(self, row: TableRow) -> bool:
        """Whether a row learns from the teacher."""
        return self.configs[row].distill.teacher is not None

    def _seeds(self, row: TableRow) -> Iterable[int]:
        return range(1 if self.quick else row.seeds) if self.seeds is None else self.seeds

    def _lacks_something(self, row: TableRow, seed: int) -> bool:
        lacks_status = self.found[row].lacks_status(seed, self.configs[row].epochs)
        return row not in self.refused and (lacks_status or self.epochs_left(row, seed) > 0)

    def _start(self, missing: list[tuple[TableRow, int]], options: StudyOptions) -> Study:
        """Start or continue the study, and tell it what the results have and it does not."""
        rows = dict.fromkeys(row for row, _ in missing)
        if any(map(self.has_teacher, rows)) and TEACHER not in self.refused:
            rows = {TEACHER: None} | rows
        groups = [self._group(row, {seed for each, seed in missing if each == row}) for row in rows]
        study = start_study(
            self.runs,
            groups,
            metric=_METRIC,
            storage=options.storage,
            artifacts=options.artifacts,
            heartbeat=options.heartbeat,
            restart_changed=True,
            add_seeds=True,
        )
        with study.store.claiming():
            known = study.attempts()
            for row in rows:
                for seed, curve in self.found[row].curves.items():
                    name, tried = self._training_name(row, seed), known.get(self._training_name(row, seed))
                    behind = tried is None or (tried.open is None and tried.epochs < len(curve.metrics))
                    if behind and not self.found[row].lacks_status(seed, self.configs[row].epochs):
                        study.add_result(name, _STATUS[curve.status], list(curve.metrics))
        return study

    def _group(self, row: TableRow, seeds: set[int]) -> Group:
        config = self.configs[row]
        config = replace(config, threads=self.threads, distill=replace(config.distill, teacher=None))
        teacher = self._training_name(TEACHER, 0) if self.has_teacher(row) else None
        return Group(self._group_name(row), config, tuple(sorted(seeds or {0})), epochs=self.epochs, after=teacher)

    def _group_name(self, row: TableRow) -> str:
        return f"{row.name}-{self.recipe}"

    def _training_name(self, row: TableRow, seed: int) -> str:
        return f"{self._group_name(row)}/seed-{seed}"

    def _config(self, row: TableRow) -> TrainConfig:
        config = read_recipe(row.name, self.recipe)
        if not self.quick:
            return config
        hints = replace(config.distill, hint_epochs=min(1, config.distill.hint_epochs))
        return replace(config, data=DataConfig("digits"), epochs=_QUICK_EPOCHS, distill=hints)

    def _record(self, record: TrainingRecord) -> None:
        """Add to the results what a training has and they do not; other commands may write them, too."""
        row = next((row for row in self.found if self._group_name(row) == record.group), None)
        if row is None or row in self.refused:
            return
        if self.found[row].add(record.number, record.curve, record.environment, record.status):
            with exclusive_lock(self.results / ".lock", ""):
                self.found[row] = result = TableResult(self.results, row, self.recipe)
                result.start(self.configs[row])
                if result.add(record.number, record.curve, record.environment, record.status):
                    result.write()
        curve = self.found[row].curves.get(record.number)
        if curve is not None and curve.status != "training":
            # Nothing will resume from the checkpoint, which is large.
            shutil.rmtree(self.runs / record.name / "checkpoint", ignore_errors=True)
