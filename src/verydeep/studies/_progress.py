"""What is shown while a study runs: nothing, lines for logs, or a live table in a terminal or notebook."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from verydeep.studies._budget import Budget
from verydeep.studies._overview import Overview
from verydeep.studies._words import format_settings, format_value, metric_label
from verydeep.terminal import echo
from verydeep.training import NotebookText, clock, describe, in_notebook, is_terminal, render_text
from verydeep.words import plural

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from verydeep.studies._records import TrainingRecord
    from verydeep.studies._study import Study

_DRAW_EVERY = 0.5  # seconds, because drawing 40 rows takes 20 ms, which trainings on the same cores do not get
_MOST_WITH_EPOCHS = 24  # trainings, above which a line per epoch would be too many
_SILENCE = 600.0  # seconds without a line, after which one says how far the study is
_NOTEBOOK_WIDTH, _NOTEBOOK_HEIGHT = 110, 40  # characters and lines


class StudyProgress:
    """What `run_study` reports while it runs; this class shows nothing.

    Override the methods you want to use.

    Attributes:
        budget: When the workers on this machine stop; `run_study` sets it before it calls `start`.

    Example:
        >>> from verydeep.studies import StudyProgress
        >>> class Dots(StudyProgress):
        ...     def update(self, records):
        ...         print(".", end="", flush=True)
    """

    budget = Budget()

    def start(self, study: Study, jobs: int, records: list[TrainingRecord]) -> None:
        """Called when the study starts or continues, with the number of workers on this machine."""

    def step(self, training: str, done: float, loss: float, accuracy: float) -> None:
        """Called a few times per second for every training on this machine.

        Args:
            training: Its name.
            done: The epochs that are done, with a fraction.
            loss: The mean loss of a recent batch.
            accuracy: The accuracy on that batch.
        """

    def update(self, records: list[TrainingRecord]) -> None:
        """Called every other second, after every epoch on this machine and at the end, with all trainings."""

    def wait(self) -> None:
        """Called when the server that records the study does not answer, before it is tried again."""

    def stop(self) -> None:
        """Called when someone has pressed Ctrl-C, while the workers on this machine save what they train."""

    def close(self) -> None:
        """Called when the study stops, for any reason."""


class StudyLines(StudyProgress):
    """Lines for logs: one per epoch in a small study, one per training that ends in a search or a large study.

    Args:
        now: Returns the time in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now

    def start(self, study: Study, jobs: int, records: list[TrainingRecord]) -> None:
        self.overview = Overview(study, jobs, records, self.budget, self.now)
        searches = any(group.sampling is not None for group in self.overview.groups.values())
        self.with_epochs = not searches and len(records) <= _MOST_WITH_EPOCHS
        self.width = max((len(record.name) for record in records), default=0)
        self.epochs = {record.name: record.epochs for record in records}
        self.ended = {record.name: (record.status, record.epochs) for record in records if record.has_ended}
        self._print(self.overview.describe())

    def step(self, training: str, done: float, loss: float, accuracy: float) -> None:
        self.overview.step(training, done, loss, accuracy)

    def update(self, records: list[TrainingRecord]) -> None:
        self.overview.update(records)
        self.width = max(self.width, *(len(record.name) for record in records), 0)  # there may be new ones
        for record in records:
            if self.with_epochs:
                for metrics in record.curve[self.epochs.get(record.name, 0) :]:
                    self._print_training(record, describe(metrics, record.goal))
                self.epochs[record.name] = max(record.epochs, self.epochs.get(record.name, 0))
            result = record.status, record.epochs
            if record.has_ended and self.ended.get(record.name) != result:
                self.ended[record.name] = result
                self._print_training(record, self._describe_end(record))
        if self.now() - self.printed >= _SILENCE:
            self._print(self.overview.describe())

    def wait(self) -> None:
        self._print(f"{self.overview.name}: the server does not answer; trying again")

    def _describe_end(self, record: TrainingRecord) -> str:
        """How a training ended; every number says what it is."""
        metric, value = metric_label(self.overview.metric), format_value(record.value, self.overview.metric)
        after = f" after {plural(record.epochs, 'epoch')}" if record.epochs else ""
        parts = [
            record.status + after + (f": {record.reason}" if record.reason else ""),
            f"best {metric} {value}" if value and self.overview.has_one_measure(record.group) else "",
            f"time {clock(record.seconds)}" if record.seconds else "",
            f"on {record.host}" if record.worker and self.overview.has_several_hosts else "",
            format_settings(record.settings),
        ]
        return "  ".join(filter(None, parts))

    def _print_training(self, record: TrainingRecord, text: str) -> None:
        done = f"{self.overview.done}/{len(self.overview.records)} done"
        self._print(f"{record.name:<{self.width}}  {text}; {done}{self.overview.describe_left()}")

    def _print(self, line: str) -> None:
        echo(line, flush=True)
        self.printed = self.now()


class StudyTable(StudyProgress):
    """A live table in a terminal.

    Args:
        console: The terminal; by default, standard output.
        now: Returns the time in seconds.
    """

    def __init__(self, console: Console | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self.console, self.now = console, now

    def start(self, study: Study, jobs: int, records: list[TrainingRecord]) -> None:
        self.overview, self.drawn = Overview(study, jobs, records, self.budget, self.now), self.now()
        self.open()
        self.draw()

    def step(self, training: str, done: float, loss: float, accuracy: float) -> None:
        self.overview.step(training, done, loss, accuracy)
        self._draw_sometimes()

    def update(self, records: list[TrainingRecord]) -> None:
        self.overview.update(records)
        self._draw_sometimes()

    def wait(self) -> None:
        self.overview.waits = True
        self.draw()

    def stop(self) -> None:
        self.overview.stops = True
        self.draw()

    def close(self) -> None:
        self.overview.stops = False
        self.draw(last=True)

    def _draw_sometimes(self) -> None:
        if self.now() - self.drawn >= _DRAW_EVERY:
            self.drawn = self.now()
            self.draw()

    def open(self) -> None:
        """Prepare for drawing."""
        from rich.console import Console
        from rich.live import Live

        self.live = Live(console=self.console or Console(highlight=False), auto_refresh=False)
        self.live.start()

    def draw(self, last: bool = False) -> None:
        """Draw the table; the last one stays."""
        from verydeep.studies._overview_table import overview_table

        console = self.live.console
        ascii_only = console.options.ascii_only
        table = overview_table(self.overview, console.width, console.height, ascii_only=ascii_only, last=last)
        self.live.update(table, refresh=not last)
        if last:
            self.live.stop()  # draws it


class StudyNotebook(StudyTable):
    """The same table in a notebook, as a text that replaces itself."""

    def open(self) -> None:
        self.text, self.shown = NotebookText(), ""

    def draw(self, last: bool = False) -> None:
        from verydeep.studies._overview_table import overview_table

        table = overview_table(self.overview, _NOTEBOOK_WIDTH, _NOTEBOOK_HEIGHT, last=last)
        text = render_text(table, _NOTEBOOK_WIDTH)
        if text != self.shown:
            self.shown = text
            self.text.update(text)


def choose_study_progress(progress: StudyProgress | bool | None) -> StudyProgress:
    """The display for a call from Python: True shows progress in a terminal or a notebook, and nothing elsewhere."""
    if progress is None or progress is False:
        return StudyProgress()
    if progress is not True:
        return progress
    return StudyNotebook() if in_notebook() else StudyTable() if is_terminal() else StudyProgress()


def make_study_progress(quiet: bool) -> StudyProgress:
    """The display for a command: a table in a terminal, lines for a file or pipe, nothing if quiet."""
    return StudyProgress() if quiet else StudyTable() if is_terminal() else StudyLines()
