"""The live table of a study: a line about all trainings, and a row for each, as far as they fit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group as Lines
from rich.table import Table
from rich.text import Text

from verydeep.studies._words import format_left, format_settings, format_value, metric_label
from verydeep.training import EpochMetrics, clock

if TYPE_CHECKING:
    from rich.console import OverflowMethod

    from verydeep.studies._overview import Overview
    from verydeep.studies._records import TrainingRecord

_HEADERS = {
    "name": "training",
    "status": "status",
    "host": "host",
    "bar": "",
    "epoch": "epoch",
    "loss": "loss",
    "train": "training\n",  # and the measure
    "value": "best\n",  # and the metric
    "valid": "validation\n",
    "test": "test\n",
    "time": "time",
    "left": "left",
    "note": "settings",
}
_WORDS = ("name", "status", "host", "bar", "note")  # columns that are aligned on the left
_ALWAYS = ("name", "status", "bar", "epoch", "loss", "train", "value", "time")
# What a narrow table leaves out, the first one first; in a search, the settings come before some of the results.
_EXPENDABLE = ("time", "host", "bar", "left", "train", "test", "loss")
_EXPENDABLE_IN_SEARCHES = ("time", "train", "host", "test", "bar", "left", "loss")
_STYLES = {"training": "cyan", "waiting": "dim", "paused": "dim", "pruned": "dim", "failed": "bold yellow"}
_BAR = 10  # characters
_GAP = 2  # spaces between columns
_SHORTEST = {"name": 8, "note": 12}  # characters


def overview_table(
    overview: Overview, width: int, height: int, *, ascii_only: bool = False, last: bool = False
) -> Lines:
    """Make the table.

    Args:
        overview: The study.
        width: The number of characters per line; columns that do not fit are left out, and no line is wrapped.
        height: The number of lines; if there are too many trainings, the most interesting ones are shown.
        ascii_only: Draw bars without special characters.
        last: Whether the table stays; then reasons that do not fit continue on the next line.
    """
    cells = _Cells(overview, ascii_only)
    headers = _headers(overview, cells)
    lines = max(header.count("\n") for header in headers.values()) + 1
    rows, hidden = _rows(overview, height - lines - 2)  # below the title, and above the line of the cursor
    shown = {name: [cells.text(name, record) for record in rows] for name in headers}
    natural = {name: _width(header, shown[name]) for name, header in headers.items()}
    widths = _fit(natural, width, _EXPENDABLE_IN_SEARCHES if overview.has_settings else _EXPENDABLE)
    shown["name"] = [_keep_end(name, widths["name"], "" if ascii_only else "…") for name in shown["name"]]
    overflow: OverflowMethod = "crop" if ascii_only else "ellipsis"
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for name, room in widths.items():
        side = "left" if name in _WORDS else "right"
        table.add_column(headers[name], justify=side, no_wrap=True, overflow=overflow, width=room)  # type: ignore[arg-type]
    for number, record in enumerate(rows):
        if last and record.reason:
            shown["note"][number].no_wrap, shown["note"][number].overflow = False, "fold"
        table.add_row(*(shown[name][number] for name in widths))
    title = Text(overview.describe(width), no_wrap=True, overflow=overflow)
    title.stylize("bold", 0, len(overview.name))
    more = [Text(_describe_hidden(overview, hidden), "dim", no_wrap=True, overflow=overflow)] if hidden else []
    return Lines(title, table, *more)


class _Cells:
    """The cells of the table: a method per column."""

    def __init__(self, overview: Overview, ascii_only: bool) -> None:
        self.overview, self.ascii_only = overview, ascii_only
        self.best, self.seconds_left = overview.best, overview.time_left().trainings

    def text(self, column: str, record: TrainingRecord) -> Text:
        """One cell."""
        cell: Text | str = getattr(self, column)(record)
        return cell if isinstance(cell, Text) else Text(cell)

    def name(self, record: TrainingRecord) -> Text:
        return Text(record.name, "bold" if record is self.best else "")

    def status(self, record: TrainingRecord) -> Text:
        status = self.overview.status(record)
        return Text(status, _STYLES.get(status, ""))  # colours only repeat what the words say

    def host(self, record: TrainingRecord) -> str:
        return record.host

    def bar(self, record: TrainingRecord) -> Text:
        full, empty = "#-" if self.ascii_only else "━─"
        filled = int(_BAR * min(1.0, self.overview.position(record) / max(1, record.goal)))
        return Text.assemble((full * filled, "cyan"), (empty * (_BAR - filled), "dim"))

    def epoch(self, record: TrainingRecord) -> str:
        """The epoch that is being trained, or how many were."""
        is_training = self.overview.status(record) == "training"
        epoch = min(int(self.overview.position(record)) + 1, record.goal) if is_training else record.epochs
        return f"{epoch}/{record.goal}"

    def loss(self, record: TrainingRecord) -> str:
        step, line = self.overview.steps.get(record.name), _last_epoch(record)
        loss = step.loss if step is not None else line.loss if line.train_loss is None else line.train_loss
        return f"{loss:.4f}" if loss is not None and math.isfinite(loss) else ""

    def train(self, record: TrainingRecord) -> str:
        step, line, measure = self.overview.steps.get(record.name), _last_epoch(record), self.overview.measure
        whole = line.get(f"train_{measure}")
        measured = line.get(measure) if whole is None else whole
        return format_value(step.accuracy if measured is None and step is not None else measured, measure)

    def value(self, record: TrainingRecord) -> str:
        return format_value(record.value, self.overview.metric)

    def valid(self, record: TrainingRecord) -> str:
        return self._score("valid", record)

    def test(self, record: TrainingRecord) -> str:
        return self._score("test", record)

    def _score(self, split: str, record: TrainingRecord) -> str:
        measure = self.overview.measure
        return format_value(_last_epoch(record).get(f"{split}_{measure}"), measure)

    def time(self, record: TrainingRecord) -> str:
        seconds = self.overview.seconds(record)
        return clock(seconds) if seconds else ""

    def left(self, record: TrainingRecord) -> str:
        seconds = self.seconds_left.get(record.name)
        return format_left(seconds) if seconds and self.overview.status(record) == "training" else ""

    def note(self, record: TrainingRecord) -> str:
        return "; ".join(filter(None, (record.reason, format_settings(record.settings))))


def _last_epoch(record: TrainingRecord) -> EpochMetrics:
    return record.curve[-1] if record.curve else EpochMetrics(0)


def _headers(overview: Overview, cells: _Cells) -> dict[str, str]:
    """The columns that have something to show, with their headers."""
    headers, records, metric = dict(_HEADERS), overview.records, overview.metric
    headers["value"] += metric_label(metric).replace(" ", "\n")
    for name in ("train", "valid", "test"):
        headers[name] += metric_label(overview.measure)
    if not overview.has_settings:
        headers["note"] = "reason"
    if metric in ("loss", "train_loss"):
        del headers["value"]
    else:  # instead of the value of the last epoch
        headers.pop(metric.removesuffix(f"_{overview.measure}"), None)
    if not overview.has_several_hosts:
        del headers["host"]
    used = {name for name in headers if name in _ALWAYS or any(cells.text(name, record) for record in records)}
    return {name: header for name, header in headers.items() if name in used}


def _rows(overview: Overview, height: int) -> tuple[list[TrainingRecord], list[TrainingRecord]]:
    """The trainings to show, and the others.

    If not all fit, those in training come first, then the best, then those without a result, and a line for the rest.
    """
    records = overview.records
    if len(records) <= height:
        return records, []
    places = {record.name: place for place, record in enumerate(overview.best_first()) if record.has_ended}

    def order(record: TrainingRecord) -> tuple[bool, bool, float]:
        place = places.get(record.name, math.inf)
        is_training = overview.status(record) == "training"
        return not is_training, record.status == "waiting", 0 if is_training else place

    ordered, count = sorted(records, key=order), max(1, height - 1)
    return ordered[:count], ordered[count:]


def _describe_hidden(overview: Overview, hidden: list[TrainingRecord]) -> str:
    """What is not shown: and 780 more: 650 waiting, 130 done."""
    counts = Counter(map(overview.category, hidden))
    words = {"training": "in training"}
    order = ("training", "waiting", "done", "diverged", "failed")
    listed = (f"{counts[category]:,} {words.get(category, category)}" for category in order if counts[category])
    return f"and {len(hidden):,} more: {', '.join(listed)}"


def _width(header: str, cells: list[Text]) -> int:
    return max(*map(len, header.split("\n")), *(cell.cell_len for cell in cells), 0)


def _keep_end(name: Text, width: int, mark: str) -> Text:
    """Cut the beginning of a long name, because the end tells trainings of a group apart."""
    return name if len(name) <= width else Text(mark, name.style) + name[len(name) + len(mark) - width :]


def _fit(natural: dict[str, int], width: int, expendable: Sequence[str]) -> dict[str, int]:
    """The widths of the columns that fit; settings and reasons take two fifths, or more if the others leave it."""
    shown = dict(natural)
    if "note" in shown:
        shown["note"] = min(natural["note"], width * 2 // 5)

    def free() -> int:
        return width - sum(shown.values()) - _GAP * (len(shown) - 1)

    def leave_out(names: Sequence[str]) -> None:
        for name in names:
            if free() < 0:
                shown.pop(name, None)

    leave_out(expendable)
    for name in ("note", "name"):  # these are cut, but not to nothing
        if name in shown and free() < 0:
            shown[name] = max(min(_SHORTEST[name], shown[name]), shown[name] + free())
    leave_out(("note", "valid", "value", "epoch"))
    if "note" in shown:
        shown["note"] = min(natural["note"], shown["note"] + max(0, free()))
    return shown
