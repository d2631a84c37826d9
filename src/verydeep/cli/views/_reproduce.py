"""Progress of `verydeep reproduce TABLE`: a line per epoch and, on a terminal, a bar with the time left."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verydeep.paper import Tables, TableTask
    from verydeep.training import EpochMetrics


class TablesLines:
    """Prints a line per epoch, for logs."""

    def __init__(self, study: Tables) -> None:
        self.study = study

    def epoch(self, task: TableTask, metrics: EpochMetrics) -> None:
        """Print an epoch that has been completed."""
        print(f"{self._line(task, metrics)}; {self.study.time_left()}", flush=True)

    def close(self) -> None:
        """Clean up after training, however it ended."""

    def _line(self, task: TableTask, metrics: EpochMetrics) -> str:
        from verydeep.training import describe

        return f"{task.row.name} seed {task.seed}  {describe(metrics, self.study.schedule.configs[task.row].epochs)}"


class TablesBar(TablesLines):
    """Also shows a bar over all epochs that are to be trained."""

    def __init__(self, study: Tables) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        super().__init__(study)
        columns = (TextColumn("epochs"), BarColumn(bar_width=None), MofNCompleteColumn(), TimeElapsedColumn())
        self.progress = Progress(*columns, TextColumn("{task.fields[left]}"), transient=True, expand=True)
        self.bar = self.progress.add_task("", total=self._epochs(), left=study.time_left())
        self.progress.start()

    def epoch(self, task: TableTask, metrics: EpochMetrics) -> None:
        self.progress.console.print(self._line(task, metrics), highlight=False, markup=False)
        self.progress.update(self.bar, advance=1, left=self.study.time_left())

    def close(self) -> None:
        self.progress.stop()

    def _epochs(self) -> int:
        return sum(self.study.schedule.epochs_missing(task) for task in self.study.schedule.tasks())


def make_tables_view(study: Tables) -> TablesLines:
    """Choose a bar for a terminal, lines for a file or pipe."""
    return TablesBar(study) if sys.stdout.isatty() else TablesLines(study)
