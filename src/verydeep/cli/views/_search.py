"""Progress of `verydeep search`, as a live table or a line per trial that has ended, and its table of trials."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from verydeep.search import SearchProgress, Study, TrialRecord, ranked, records
from verydeep.training import clock

if TYPE_CHECKING:
    from rich.table import Table

_SHOWN = 10
_EVERY = 2.0  # seconds, because reading a large study from a server takes a while


class SearchLines(SearchProgress):
    """Prints a line per trial that has ended, for logs."""

    def start(self, study: Study, jobs: int) -> None:
        self.study, self.seen = study, 0.0
        self.printed = {record.trial for record in ranked(records(study), study.config.maximise)}

    def update(self) -> None:
        if time.monotonic() - self.seen >= _EVERY:
            self._print_ended()
            self.seen = time.monotonic()

    def close(self) -> None:
        self._print_ended()

    def _print_ended(self) -> None:
        found = records(self.study)
        for record in found:
            if record.status not in ("training", "waiting") and record.trial not in self.printed:
                self.printed.add(record.trial)
                line = "  ".join(part for part in cells(record, self.study.config.metric) if part)
                print(f"{len(self.printed)}/{len(found)}  {line}", flush=True)


class SearchTable(SearchProgress):
    """Shows the best trials and the time left in a live table."""

    def start(self, study: Study, jobs: int) -> None:
        from rich.live import Live

        self.study, self.jobs, self.seen = study, jobs, time.monotonic()
        self.live = Live(self._table(), auto_refresh=False)
        self.live.start()

    def update(self) -> None:
        if time.monotonic() - self.seen >= _EVERY:
            self.live.update(self._table(), refresh=True)
            self.seen = time.monotonic()

    def close(self) -> None:
        self.live.update(self._table(), refresh=True)
        self.live.stop()

    def _table(self) -> Table:
        found = records(self.study)
        title = f"{self.study.name}: {progress(found, self.jobs)}"
        best = ranked(found, self.study.config.maximise)[:_SHOWN]
        return trials_table(best, self.study.config.metric, title)


def make_search_progress(quiet: bool) -> SearchProgress:
    """Choose a table for a terminal, lines for a file or pipe, nothing if `quiet`."""
    return SearchProgress() if quiet else SearchTable() if sys.stdout.isatty() else SearchLines()


def progress(found: list[TrialRecord], jobs: int) -> str:
    """Describe how far a search is, and estimate the time left from the mean time of the trials that have ended."""
    ended = [record for record in found if record.status not in ("training", "waiting")]
    running = sum(record.status == "training" for record in found)
    text = f"{len(ended)} of {len(found)} trials ended, {running} in training"
    if ended and len(ended) < len(found):
        mean = sum(record.seconds for record in ended) / len(ended)
        text += f", about {clock(mean * (len(found) - len(ended)) / jobs)} left"
    return text


def trials_table(rows: list[TrialRecord], metric: str, title: str = "") -> Table:
    """Make a table of trials."""
    from rich.table import Table
    from rich.text import Text

    table = Table("trial", "status", metric.replace("_", " "), "epochs", "time", "settings", title=title or None)
    for record in rows:
        table.add_row(*(Text(cell) for cell in cells(record, metric)))
    return table


def cells(record: TrialRecord, metric: str) -> list[str]:
    """Format a trial for a row of the table or a line of the log."""
    value = "" if record.value is None else f"{record.value:.2%}" if "accuracy" in metric else f"{record.value:.4g}"
    settings = " ".join(f"{name}={_short(v)}" for name, v in record.settings.items())
    status = f"{record.status}: {record.reason}" if record.reason else record.status
    return [str(record.trial), status, value, str(record.epochs), clock(record.seconds), settings]


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
