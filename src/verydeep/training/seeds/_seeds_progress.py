"""What is shown while several seeds train: nothing, lines, or a live table in a terminal or notebook."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from verydeep.training._notebook import NotebookText, in_notebook, render_text
from verydeep.training._progress import clock, describe, is_terminal
from verydeep.training.run._metrics import EpochMetrics
from verydeep.training.run._run import Run
from verydeep.training.seeds._seeds_folder import Seeds

if TYPE_CHECKING:
    from rich.table import Table


class SeedsProgress:
    """Shows nothing; the base of the others."""

    def start(self, seeds: Seeds) -> None:
        """Called when training begins or continues."""

    def update(self, running: Collection[int], failed: Mapping[int, str]) -> None:
        """Called several times per second, with the seeds that train and the problems of those that failed."""

    def close(self) -> None:
        """Called when training stops, for any reason."""


class SeedsLines(SeedsProgress):
    """A line per epoch of every seed, for logs."""

    def start(self, seeds: Seeds) -> None:
        self.seeds = seeds
        self.shown = {seed: len(run.metrics) for seed, run in seeds.runs.items()}
        self.ended: set[int] = set()

    def update(self, running: Collection[int], failed: Mapping[int, str]) -> None:
        for seed, run in self.seeds.runs.items():
            metrics = run.metrics
            for line in metrics[self.shown.get(seed, 0) :]:
                print(f"seed {seed}  {describe(line, run.config.epochs)}", flush=True)
            self.shown[seed] = len(metrics)
        for seed in failed.keys() - self.ended:
            print(f"seed {seed}  failed: {failed[seed]}", flush=True)
            self.ended.add(seed)


class SeedsTable(SeedsProgress):
    """A live table with one row per seed."""

    def start(self, seeds: Seeds) -> None:
        from rich.live import Live

        self.seeds = seeds
        self.live = Live(self._table((), {}), auto_refresh=False)
        self.live.start()

    def update(self, running: Collection[int], failed: Mapping[int, str]) -> None:
        self.live.update(self._table(running, failed), refresh=True)

    def close(self) -> None:
        self.live.stop()

    def _table(self, running: Collection[int], failed: Mapping[int, str]) -> "Table":
        from rich.table import Table

        runs = self.seeds.runs
        validated = any(line.valid_accuracy is not None for run in runs.values() for line in run.metrics)
        splits = ["validation", "test"] if validated else ["test"]
        table = Table("seed", "status", "epoch", "loss", "accuracy", *splits, "time")
        for seed in self.seeds.seeds:
            status = f"failed: {failed[seed]}" if seed in failed else "training" if seed in running else "waiting"
            table.add_row(*self._cells(seed, status, runs.get(seed), validated))
        return table

    def _cells(self, seed: int, status: str, run: Run | None, validated: bool) -> list[str]:
        from rich.markup import escape

        metrics = run.metrics if run else []
        line = metrics[-1] if metrics else EpochMetrics(0)
        if run and run.summary:
            status = run.summary.status
        elif run and status == "waiting":
            status = "saved"
        accuracies = [line.accuracy, *([line.valid_accuracy] if validated else []), line.test_accuracy]
        return [
            str(seed),
            escape(status),
            f"{len(metrics)}/{self.seeds.config.epochs}",
            "" if line.loss is None else f"{line.loss:.4g}",
            *("" if share is None else f"{share:.2%}" for share in accuracies),
            clock(line.seconds),
        ]


class SeedsNotebook(SeedsTable):
    """The same table in a notebook, as a text that replaces itself."""

    def start(self, seeds: Seeds) -> None:
        self.seeds, self.text = seeds, NotebookText()
        self.update((), {})

    def update(self, running: Collection[int], failed: Mapping[int, str]) -> None:
        text = render_text(self._table(running, failed))
        if text != getattr(self, "shown", ""):
            self.shown = text
            self.text.update(text)

    def close(self) -> None:
        """The last table stays."""


def choose_seeds_progress(progress: SeedsProgress | bool | None) -> SeedsProgress:
    """The display for a call from Python: True shows progress in a terminal or a notebook, and nothing elsewhere."""
    if progress is None or progress is False:
        return SeedsProgress()
    if progress is not True:
        return progress
    return SeedsNotebook() if in_notebook() else SeedsTable() if is_terminal() else SeedsProgress()


def make_seeds_progress(quiet: bool) -> SeedsProgress:
    """A table in a terminal, lines in a file, nothing if quiet."""
    return SeedsProgress() if quiet else SeedsTable() if is_terminal() else SeedsLines()
