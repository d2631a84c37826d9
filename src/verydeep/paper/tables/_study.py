"""Training for the tables, as far as time allows; recorded epochs are never trained again."""

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from verydeep.errors import UserError
from verydeep.files import read_json
from verydeep.lock import exclusive_lock
from verydeep.paper._jobs import Job, train_jobs
from verydeep.paper._recipes import Recipe
from verydeep.paper.tables._rows import TableRow
from verydeep.paper.tables._time_left import time_left
from verydeep.paper.tables._training_order import Schedule, TableTask
from verydeep.training import EpochMetrics, Interrupt, TrainConfig


@dataclass
class Tables:
    """The study behind the tables.

    Attributes:
        rows: The rows to train.
        recipe: Which of their recipes.
        results: Folder of the results.
        runs: Folder of the runs.
        seeds: Which seeds; by default, as many as the paper reports.
        epochs: Stop after this many epochs of the recipe; by default, at its end.
        workers: Number of processes; one on a machine with a GPU.
        threads: Number of threads per process.
        quick: Train for a moment on the digits, to check that everything works.
    """

    rows: tuple[TableRow, ...]
    recipe: Recipe
    results: Path
    runs: Path
    seeds: tuple[int, ...] | None = None
    epochs: int | None = None
    workers: int = 2
    threads: int = 1
    quick: bool = False

    def __post_init__(self) -> None:
        if torch.cuda.is_available():
            self.workers = 1
        self.schedule = Schedule(self.rows, self.recipe, self.results, self.runs, self.seeds, self.epochs, self.quick)
        self.waiting: list[TableTask] = []

    def train(
        self,
        root: Path | None,
        interrupt: Interrupt,
        seconds: float | None,
        epoch_done: Callable[[TableTask, EpochMetrics], None],
    ) -> None:
        """Train until nothing is left, the user interrupts or time is up.

        Rows with results of other settings are skipped. What could not be started, such as students whose teacher is
        not ready, stays in `waiting`.

        Args:
            root: Folder of the known datasets.
            interrupt: When it is requested, trainings under way are saved and left.
            seconds: Time limit; None for no limit.
            epoch_done: Called with the metrics of every epoch.
        """
        with ExitStack() as locks:
            self._start(locks)
            self.waiting = waiting = self.schedule.tasks()
            taken: dict[Path, TableTask] = {}
            before: dict[Path, int] = {}

            def next_job() -> Job | None:
                task = next(filter(self.schedule.teacher_ready, waiting), None)
                if task is None:
                    return None
                waiting.remove(task)
                path = self.schedule.run_path(task)
                taken[path], before[path] = task, self.schedule.epochs_trained(task)
                return Job(self._job_config(task), path, task.epochs)

            def epoch(job: Job, metrics: EpochMetrics) -> None:
                task = taken[job.path]
                result = self.schedule.results[task.row]
                result.epoch(task.seed, metrics, read_json(job.path / "environment.json"))
                if metrics.epoch > before[job.path]:
                    epoch_done(task, metrics)

            workers = min(self.workers, len(waiting))
            for job, outcome in train_jobs(next_job, workers, root, interrupt, seconds, epoch):
                task = taken.pop(job.path)
                if outcome.status == "killed":
                    waiting.insert(0, task)
                else:
                    self.schedule.results[task.row].end(task.seed, outcome.status == "diverged")
                    self._tidy(task)

    def time_left(self) -> str:
        """How long the rest takes, in words."""
        return time_left(self.schedule, self.workers)

    def _start(self, locks: ExitStack) -> None:
        """Lock the rows to train and set their settings."""
        schedule = self.schedule
        rows = [row for row in schedule.configs if row not in schedule.refused]
        if schedule.refused and not rows:
            raise UserError(schedule.results[schedule.refused[0]].refusal)
        for row in rows:
            schedule.results[row].start(schedule.configs[row])
            busy = f"{row.name} is being trained by another process"
            locks.enter_context(exclusive_lock(self.runs / f"{row.name}-{self.recipe}.lock", busy, wait=False))

    def _job_config(self, task: TableTask) -> TrainConfig:
        config = replace(self.schedule.configs[task.row], seed=task.seed)
        return config if torch.cuda.is_available() else replace(config, device="cpu", threads=self.threads)

    def _tidy(self, task: TableTask) -> None:
        """Remove checkpoints that nothing will resume from: they are large."""
        whole = self.schedule.configs[task.row].epochs
        if not self.schedule.results[task.row].epochs_left(task.seed, whole):
            shutil.rmtree(self.schedule.run_path(task) / "checkpoint", ignore_errors=True)
