"""The table of `verydeep search show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verydeep.studies import TrainingRecord
from verydeep.training import clock
from verydeep.words import plural

if TYPE_CHECKING:
    from rich.table import Table

_WIDE = 90  # characters that the whole table needs


def progress(found: list[TrainingRecord], jobs: int) -> str:
    """Describe how far a search is, and estimate the time left from the mean time of the completed trials."""
    ended = [record for record in found if record.status not in ("training", "waiting")]
    running = sum(record.status == "training" for record in found)
    text = f"{len(ended)} of {plural(len(found), 'trial')} done, {running} in training"
    if ended and len(ended) < len(found):
        mean = sum(record.seconds for record in ended) / len(ended)
        text += f", about {clock(mean * (len(found) - len(ended)) / jobs)} left"
    return text


def trials_table(rows: list[TrainingRecord], metric: str, title: str = "", width: int = _WIDE) -> Table:
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


def cells(record: TrainingRecord, metric: str) -> list[str]:
    """Format a trial for a row of the table."""
    status = f"{record.status}: {record.reason}" if record.reason else record.status
    numbers = [_value(record, metric), str(record.epochs), clock(record.seconds)]
    return [str(record.number), status, *numbers, _settings(record)]


def labelled(record: TrainingRecord, metric: str) -> str:
    """Format a trial for a line of the log, in which every number says what it is."""
    status = f"{record.status}: {record.reason}" if record.reason else record.status
    value = _value(record, metric)
    parts = [f"trial {record.number}", status, value and f"{metric_label(metric)} {value}"]
    parts += [plural(record.epochs, "epoch"), clock(record.seconds), _settings(record)]
    return "  ".join(part for part in parts if part)


def metric_label(metric: str) -> str:
    """A metric in words: validation accuracy."""
    return metric.replace("valid_", "validation_").replace("_", " ")


def _value(record: TrainingRecord, metric: str) -> str:
    if record.value is None:
        return ""
    return f"{record.value:.2%}" if "accuracy" in metric else f"{record.value:.4g}"


def _settings(record: TrainingRecord) -> str:
    """The settings of a trial, without the names of their tables where that is unambiguous."""
    last = [name.rpartition(".")[2] for name in record.settings]
    names = (short if last.count(short) == 1 else name for name, short in zip(record.settings, last, strict=True))
    return " ".join(f"{name}={_short(v)}" for name, v in zip(names, record.settings.values(), strict=True))


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
