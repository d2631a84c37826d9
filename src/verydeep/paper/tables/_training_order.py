"""What to train next for the tables: the seeds that are missing, teachers before their students."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from verydeep.data import DataConfig
from verydeep.files import read_json
from verydeep.paper._recipes import Recipe, read_recipe
from verydeep.paper.tables._results import TableResult
from verydeep.paper.tables._rows import TEACHER, TableRow
from verydeep.training import TrainConfig

_QUICK_EPOCHS = 2


@dataclass(frozen=True)
class TableTask:
    """One seed of a row, to be trained up to an epoch."""

    row: TableRow
    seed: int
    epochs: int


class Schedule:
    """The seeds of some rows that are still to be trained.

    A row with hints learns from a teacher, which must be trained to its end first; it is scheduled even if it is not
    among the rows.

    Args:
        rows: The rows to train.
        recipe: Which of their recipes.
        results: Folder of the results.
        runs: Folder of the runs.
        seeds: Which seeds; by default, as many as the paper reports.
        epochs: Stop after this many epochs of the recipe; by default, at its end.
        quick: Train for a moment on the digits, to check that everything works.
    """

    def __init__(
        self,
        rows: Iterable[TableRow],
        recipe: Recipe,
        results: Path,
        runs: Path,
        seeds: tuple[int, ...] | None = None,
        epochs: int | None = None,
        quick: bool = False,
    ) -> None:
        self.rows = tuple(row for row in rows if row.quick or not quick)
        self.recipe, self.runs, self.seeds, self.epochs, self.quick = recipe, runs, seeds, epochs, quick
        self.configs = {row: self._config(row) for row in self.rows}
        if any(config.distill.teacher for config in self.configs.values()):
            self.configs.setdefault(TEACHER, self._config(TEACHER))
        self.results = {row: TableResult(results, row, recipe) for row in self.configs}
        self.refused = [row for row, config in self.configs.items() if not self.results[row].fits(config)]

    def tasks(self) -> list[TableTask]:
        """What is still to be trained, starting with a teacher if one is needed."""
        tasks = [task for row in self.rows if row not in self.refused for task in self._tasks_of(row)]
        if "training" in map(self.teacher_status, tasks) and TEACHER not in self.refused:
            teacher = TableTask(TEACHER, 0, self._last_epoch(TEACHER))
            tasks = [teacher, *(task for task in tasks if (task.row, task.seed) != (TEACHER, 0))]
        return tasks

    def _tasks_of(self, row: TableRow) -> list[TableTask]:
        result, whole, last = self.results[row], self.configs[row].epochs, self._last_epoch(row)
        tasks = []
        for seed in range(1 if self.quick else row.seeds) if self.seeds is None else self.seeds:
            if result.epochs_left(seed, last):
                tasks.append(TableTask(row, seed, last))
            elif result.lacks_status(seed, whole):
                tasks.append(TableTask(row, seed, whole))
        return tasks

    def teacher_ready(self, task: TableTask) -> bool:
        """Whether a task's teacher is trained, if it has one."""
        return self.teacher_status(task) in (None, "finished", "stopped early")

    def teacher_status(self, task: TableTask) -> str | None:
        """How the training of a task's teacher ended, or `training` if it has not; None without a teacher."""
        teacher = self.configs[task.row].distill.teacher
        if teacher is None:
            return None
        file = Path(teacher) / "summary.json"
        return str(read_json(file).get("status")) if file.exists() else "training"

    def run_path(self, task: TableTask) -> Path:
        """The folder of a task's run."""
        return self.runs / f"{task.row.name}-{self.recipe}" / f"seed-{task.seed}"

    def epochs_trained(self, task: TableTask) -> int:
        """Number of epochs that a task's run has; fewer than the results have if its folder was lost."""
        metrics = self.run_path(task) / "metrics.jsonl"
        return len(metrics.read_bytes().splitlines()) if metrics.exists() else 0

    def epochs_missing(self, task: TableTask) -> int:
        """Number of epochs that a task's run is still to be trained."""
        return max(0, task.epochs - self.epochs_trained(task))

    def _config(self, row: TableRow) -> TrainConfig:
        config = read_recipe(row.name, self.recipe)
        if config.distill.teacher is not None:
            teacher = self.run_path(TableTask(TEACHER, 0, config.epochs))
            config = replace(config, distill=replace(config.distill, teacher=str(teacher)))
        if self.quick:
            hints = replace(config.distill, hint_epochs=min(1, config.distill.hint_epochs))
            return replace(config, data=DataConfig("digits"), epochs=_QUICK_EPOCHS, distill=hints)
        return config

    def _last_epoch(self, row: TableRow) -> int:
        """The epoch at which to stop a row."""
        whole = self.configs[row].epochs
        return min(self.epochs or whole, whole)
