"""Training for the tables, as far as time allows; what is in the results is never trained again."""

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import torch

from verydeep.data import DataConfig
from verydeep.errors import UserError
from verydeep.files import read_json
from verydeep.lock import exclusive_lock
from verydeep.models import create_model, multiply_adds
from verydeep.paper._duration import hours
from verydeep.paper._jobs import Job, train_jobs
from verydeep.paper._recipes import Recipe, read_recipe
from verydeep.paper.tables._results import TableResult
from verydeep.paper.tables._rows import TEACHER, Entry
from verydeep.training import Interrupt, ModelConfig, TrainConfig

Tell = Callable[["Task", dict[str, Any]], None]
_QUICK_EPOCHS = 2


@dataclass(frozen=True)
class Task:
    """A seed of a row, to be trained up to an epoch."""

    entry: Entry
    seed: int
    epochs: int


@dataclass
class Tables:
    """What is to be trained, and where it is kept.

    Attributes:
        entries: The rows.
        recipe: Whose settings.
        results: Where results are kept.
        runs: Where runs are.
        seeds: Which; as many as the paper reports unless given.
        epochs: Stop for now after so many epochs of the recipe.
        workers: Processes; one where there is a GPU.
        threads: Of each process.
        quick: Train for a moment on the digits, to see that everything works.
    """

    entries: tuple[Entry, ...]
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
        if self.quick:
            self.entries = tuple(entry for entry in self.entries if entry.quick)
        self.waiting: list[Task] = []
        self.configs = {entry: self._config(entry) for entry in self.entries}
        if any(config.distill.teacher for config in self.configs.values()):
            self.configs.setdefault(TEACHER, self._config(TEACHER))
        self.found = {entry: TableResult(self.results, entry, self.recipe) for entry in self.configs}
        self.refused = [entry for entry, config in self.configs.items() if not self.found[entry].fits(config)]

    def tasks(self) -> list[Task]:
        """What is not trained yet, a teacher that is needed first."""
        tasks = []
        for entry in self.entries:
            if entry in self.refused:
                continue
            config = self.configs[entry]
            for seed in range(1 if self.quick else entry.seeds) if self.seeds is None else self.seeds:
                epochs = self._until(entry)
                if self.found[entry].left(seed, epochs):
                    tasks.append(Task(entry, seed, epochs))
                elif self.found[entry].unsettled(seed, config.epochs):
                    tasks.append(Task(entry, seed, config.epochs))
        if "training" in map(self.teaching, tasks) and TEACHER not in self.refused:
            teacher = Task(TEACHER, 0, self._until(TEACHER))
            tasks = [teacher, *(task for task in tasks if (task.entry, task.seed) != (TEACHER, 0))]
        return tasks

    def train(self, root: Path | None, interrupt: Interrupt, seconds: float | None, tell: Tell) -> None:
        """Train; `tell` gets every epoch. Rows whose results are of other settings are left alone."""
        fitting = {entry: config for entry, config in self.configs.items() if entry not in self.refused}
        if not fitting:
            raise UserError(self.found[self.refused[0]].refusal)
        with ExitStack() as held:
            for entry, config in fitting.items():
                self.found[entry].start(config)
                busy = f"{entry.name} is being trained by another process"
                held.enter_context(exclusive_lock(self.runs / f"{entry.name}-{self.recipe}.lock", busy, wait=False))
            self.waiting = waiting = self.tasks()
            taken: dict[Path, Task] = {}
            before: dict[Path, int] = {}
            workers = min(self.workers, len(waiting))

            def next_job() -> Job | None:
                task = next(filter(self.taught, waiting), None)
                if task is None:
                    return None
                waiting.remove(task)
                path = self.path(task)
                taken[path], before[path] = task, self._trained(task)
                return Job(self._seeded(task), path, task.epochs)

            def epoch(job: Job, metrics: dict[str, Any]) -> None:
                task = taken[job.path]
                self.found[task.entry].epoch(task.seed, metrics, read_json(job.path / "environment.json"))
                if metrics["epoch"] > before[job.path]:
                    tell(task, metrics)

            for job, outcome in train_jobs(next_job, workers, root, interrupt, seconds, epoch):
                task = taken.pop(job.path)
                if outcome.status == "killed":
                    waiting.insert(0, task)
                else:
                    self.found[task.entry].end(task.seed, outcome.status == "diverged")
                    self._tidy(task)

    def path(self, task: Task) -> Path:
        """The run's folder."""
        return self.runs / f"{task.entry.name}-{self.recipe}" / f"seed-{task.seed}"

    def left(self) -> str:
        """What the rest costs, from the epochs measured so far; a network not measured yet counts by its products."""
        until = "" if self.epochs is None else f" up to epoch {self.epochs}"
        known = {entry: seconds for entry, result in self.found.items() if (seconds := epoch_seconds(result))}
        tasks = self.tasks()
        if tasks and not known:
            return "no epoch measured yet"
        each = median(seconds / self._products(entry) for entry, seconds in known.items()) if known else 0.0
        cost = {entry: known.get(entry, each * self._products(entry)) for entry in self.configs}
        total = sum(self.missing(task) * cost[task.entry] for task in tasks)
        return f"{hours(total / max(1, min(self.workers, len(tasks))))} left{until}"

    def missing(self, task: Task) -> int:
        """Epochs to train; more than the results lack where a run's folder was lost."""
        return max(0, task.epochs - self._trained(task))

    def taught(self, task: Task) -> bool:
        """Whether a row's teacher has been trained, if it has one."""
        return self.teaching(task) in (None, "finished", "stopped early")

    def teaching(self, task: Task) -> str | None:
        """How a row's teacher has ended, `training` while it has not; None if the row has no teacher."""
        teacher = self.configs[task.entry].distill.teacher
        if teacher is None:
            return None
        file = Path(teacher) / "summary.json"
        return str(read_json(file).get("status")) if file.exists() else "training"

    def _config(self, entry: Entry) -> TrainConfig:
        config = read_recipe(entry.name, self.recipe)
        if config.distill.teacher is not None:
            teacher = self.path(Task(TEACHER, 0, config.epochs))
            config = replace(config, distill=replace(config.distill, teacher=str(teacher)))
        if self.quick:
            hints = replace(config.distill, hint_epochs=min(1, config.distill.hint_epochs))
            return replace(config, data=DataConfig("digits"), epochs=_QUICK_EPOCHS, distill=hints)
        return config

    def _until(self, entry: Entry) -> int:
        """The epoch to stop at for now."""
        whole = self.configs[entry].epochs
        return min(self.epochs or whole, whole)

    def _trained(self, task: Task) -> int:
        """Epochs that a run has."""
        metrics = self.path(task) / "metrics.jsonl"
        return len(metrics.read_bytes().splitlines()) if metrics.exists() else 0

    def _products(self, entry: Entry) -> float:
        """Multiply-adds for a sample; those of a teacher, which only answers, count a third."""
        own = _products(self.configs[entry].model)
        taught = self.configs[entry].distill.teacher is not None
        return own + (_products(self.configs[TEACHER].model) / 3 if taught else 0)

    def _seeded(self, task: Task) -> TrainConfig:
        config = replace(self.configs[task.entry], seed=task.seed)
        return config if torch.cuda.is_available() else replace(config, device="cpu", threads=self.threads)

    def _tidy(self, task: Task) -> None:
        """What nobody goes on from takes a lot of room."""
        if not self.found[task.entry].left(task.seed, self.configs[task.entry].epochs):
            shutil.rmtree(self.path(task) / "checkpoint", ignore_errors=True)


def epoch_seconds(result: TableResult) -> float | None:
    """What an epoch takes; those of hints, which cost less, say nothing about the others."""
    first = result.config.distill.hint_epochs if result.config else 0
    times = []
    for curve in result.curves.values():
        if len(curve.metrics) > first:
            began = curve.metrics[first - 1]["seconds"] if first else 0.0
            times.append((curve.seconds - began) / (len(curve.metrics) - first))
    return median(times) if times else None


@cache
def _products(model: ModelConfig) -> float:
    """Multiply-adds for a sample."""
    with torch.device("meta"):
        return multiply_adds(create_model(model.name, **model.overrides()))
