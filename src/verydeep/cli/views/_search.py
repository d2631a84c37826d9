"""What `verydeep search show` prints: how far a search is, and a table of its trials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verydeep.studies import TrainingRecord, format_settings, format_value, metric_label
from verydeep.training import clock
from verydeep.words import plural

if TYPE_CHECKING:
    from rich.table import Table

_WIDE = 90  # characters that the whole table needs


def progress(found: list[TrainingRecord]) -> str:
    """Describe how far a search is."""
    running = sum(record.status == "training" for record in found)
    ended = sum(record.has_ended for record in found)
    return f"{ended} of {plural(len(found), 'trial')} done, {running} in training"


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
    numbers = [format_value(record.value, metric), str(record.epochs), clock(record.seconds)]
    return [str(record.number), status, *numbers, format_settings(record.settings)]
