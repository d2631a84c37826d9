"""Progress of `verydeep search`, as a live table or a line per completed trial, and its table of trials."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from verydeep.search import SearchProgress, Study, TrialRecord, ranked, records
from verydeep.training import clock
from verydeep.words import plural

if TYPE_CHECKING:
    from rich.table import Table

_SHOWN = 10
_WIDE = 90  # characters that the whole table needs
_EVERY = 2.0  # seconds, because reading a large study from a server takes a while


class SearchLines(SearchProgress):
    """Prints a line per completed trial, for logs."""

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
                print(f"{len(self.printed)}/{len(found)}  {labelled(record, self.study.config.metric)}", flush=True)


class SearchTable(SearchProgress):
    """Shows the best trials and the time left in a live table."""

    def start(self, study: Study, jobs: int) -> None:
        from rich.live import Live

        self.study, self.jobs, self.seen = study, jobs, time.monotonic()
        self.live = Live(auto_refresh=False)
        self.live.start()
        self.live.update(self._table(), refresh=True)

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
        return trials_table(best, self.study.config.metric, title, self.live.console.width)


def make_search_progress(quiet: bool) -> SearchProgress:
    """Choose a table for a terminal, lines for a file or pipe, nothing if `quiet`."""
    return SearchProgress() if quiet else SearchTable() if sys.stdout.isatty() else SearchLines()


def progress(found: list[TrialRecord], jobs: int) -> str:
    """Describe how far a search is, and estimate the time left from the mean time of the completed trials."""
    ended = [record for record in found if record.status not in ("training", "waiting")]
    running = sum(record.status == "training" for record in found)
    text = f"{len(ended)} of {plural(len(found), 'trial')} done, {running} in training"
    if ended and len(ended) < len(found):
        mean = sum(record.seconds for record in ended) / len(ended)
        text += f", about {clock(mean * (len(found) - len(ended)) / jobs)} left"
    return text


def trials_table(rows: list[TrialRecord], metric: str, title: str = "", width: int = _WIDE) -> Table:
    """Make a table of trials; a narrow one leaves out epochs and time, so that the settings are readable."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    headers = ["trial", "status", metric_label(metric), "epochs", "time", "settings"]
    hidden = () if width >= _WIDE else (3, 4)
    table = Table(title=title or None, box=SIMPLE_HEAD, pad_edge=False)
    for number, header in enumerate(headers):
        if number not in hidden:
            table.add_column(header)
    for record in rows:
        table.add_row(*(Text(cell) for number, cell in enumerate(cells(record, metric)) if number not in hidden))
    return table


def cells(record: TrialRecord, metric: str) -> list[str]:
    """Format a trial for a row of the table."""
    status = f"{record.status}: {record.reason}" if record.reason else record.status
    numbers = [_value(record, metric), str(record.epochs), clock(record.seconds)]
    return [str(record.trial), status, *numbers, _settings(record)]


def labelled(record: TrialRecord, metric: str) -> str:
    """Format a trial for a line of the log, in which every number says what it is."""
    status = f"{record.status}: {record.reason}" if record.reason else record.status
    value = _value(record, metric)
    parts = [f"trial {record.trial}", status, value and f"{metric_label(metric)} {value}"]
    parts += [plural(record.epochs, "epoch"), clock(record.seconds), _settings(record)]
    return "  ".join(part for part in parts if part)


def metric_label(metric: str) -> str:
    """A metric in words: validation accuracy."""
    return metric.replace("valid_", "validation_").replace("_", " ")


def _value(record: TrialRecord, metric: str) -> str:
    if record.value is None:
        return ""
    return f"{record.value:.2%}" if "accuracy" in metric else f"{record.value:.4g}"


def _settings(record: TrialRecord) -> str:
    """The settings of a trial, without the names of their tables where that is unambiguous."""
    last = [name.rpartition(".")[2] for name in record.settings]
    names = (short if last.count(short) == 1 else name for name, short in zip(record.settings, last, strict=True))
    return " ".join(f"{name}={_short(v)}" for name, v in zip(names, record.settings.values(), strict=True))


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
