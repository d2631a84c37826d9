"""A table in memory: columns of numbers, dates or text, as they were read."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from torch import Tensor

from verydeep.data.own._text_column import TextColumn
from verydeep.data.own._written import DATE_FORMS, Form, parse
from verydeep.errors import UserError, list_names, shorten

Column = np.ndarray | TextColumn
_MOST_COLUMNS = 200_000


@dataclass(frozen=True)
class Table:
    """Named columns of one file.

    Attributes:
        path: The file, for error messages; for a table without one, what it is called.
        columns: Columns by name: float64 with NaN for missing numbers, datetime64 with NaT for missing dates, or text.
            A column of an unsupported type is stored as the error to raise when it is used, since it may be ignored.
        rows: Row numbers as an editor shows them, so in a CSV file the header is row 1; without a file, from 0.
    """

    path: Path | str
    columns: dict[str, Column | UserError]
    rows: np.ndarray

    def __post_init__(self) -> None:
        if len(self.columns) > _MOST_COLUMNS:
            raise UserError(
                f"{self.path}: has {len(self.columns):,} columns, and a table may have {_MOST_COLUMNS:,}; save numbers "
                "as an .npz file"
            )

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, chosen: Tensor) -> "Table":
        index = chosen.numpy()
        columns = {n: c if isinstance(c, UserError) else c[index] for n, c in self.columns.items()}
        return Table(self.path, columns, self.rows[index])

    def place(self, row: int, column: str) -> str:
        """The place of a cell, for error messages."""
        return f"{self.path}: {self.row(row)}, column {column!r}"

    def row(self, row: int) -> str:
        """The number of a row, for error messages."""
        return f"row {self.rows[row]}" + (" (from 0)" if isinstance(self.path, str) else "")

    def check_has(self, column: str, setting: str = "") -> None:
        """Raise if there is no such column; `setting` is the setting that names it."""
        if column in self.columns:
            return
        what = f"{setting}: {self.path} has no column {column!r}" if setting else f"{self.path}: no column {column!r}"
        lower = {name.lower(): name for name in self.columns}
        near = get_close_matches(column.lower(), lower, n=1)
        raise UserError(
            f"{what}; " + (f"did you mean {lower[near[0]]!r}?" if near else f"it has {list_names(self.columns)}")
        )

    def cells(self, column: str) -> Column:
        """Get a column by name."""
        self.check_has(column)
        cells = self.columns[column]
        if isinstance(cells, UserError):
            raise cells
        return cells

    def text(self, column: str) -> np.ndarray:
        """Get a column as text, with None for missing cells; whole numbers have no decimal point."""
        return self.as_text(column).text()

    def as_text(self, column: str) -> TextColumn:
        """Get a column as text, numbers and dates as they are usually written."""
        cells = self.cells(column)
        if isinstance(cells, TextColumn):
            return cells
        values, codes = np.unique(cells, return_inverse=True, equal_nan=True)
        return TextColumn(*_without_missing(values, codes))

    def floats(self, column: str, form: Form = "number") -> np.ndarray | None:
        """Get a column as float64, with NaN for missing cells; None if any cell is not written in this form.

        Dates are days since 1970-01-01. A column that was stored as numbers or dates has only one form.
        """
        cells = self.cells(column)
        if isinstance(cells, TextColumn):
            return cells.parsed(form)
        if cells.dtype.kind == "M":
            days = (cells - np.datetime64(0, "D")) / np.timedelta64(1, "D")
            values, is_form = np.asarray(days, dtype=np.float64), form in DATE_FORMS
        else:
            values, is_form = cells, form in ("number", "grouped", "boolean")
        return values if is_form or is_missing(cells).all() else None

    def numbers(self, column: str, form: Form = "number") -> np.ndarray:
        """Get a column as float64; raise at the first cell not in this form, or not finite in float32."""
        values, cells = self.floats(column, form), self.cells(column)
        if values is None:
            row, cell = self._first_wrong(column, form)
            what = "date" if form in DATE_FORMS else "percentage" if form == "percent" else "number"
            raise UserError(
                f"{self.place(row, column)}: {shorten(cell)} is not a {what}, but other rows hold {what}s; "
                "correct it, or list the column in data.categorical"
            )
        bad = np.flatnonzero(np.abs(values) > np.finfo(np.float32).max)
        if len(bad):
            row = int(bad[0])
            cell = self.as_text(column)[bad[:1]].text()[0] if isinstance(cells, TextColumn) else cells[row]
            raise UserError(
                f"{self.place(row, column)}: {str(cell)[:60]} is infinite or too large for float32; "
                "correct or remove it"
            )
        return values

    def _first_wrong(self, column: str, form: Form) -> tuple[int, str]:
        """The first cell that is not written in a form: its row and its text."""
        stored, cells = self.cells(column), self.as_text(column)
        if not isinstance(stored, TextColumn):  # all of them are
            row = int(np.flatnonzero(~is_missing(stored))[0])
            return row, cells.values[cells.codes[row]]
        wrong = [parse(value, form, cells.decimal) is None for value in cells.values]
        row = int(np.flatnonzero(cells.expand(wrong, False, bool))[0])
        return row, cells.values[cells.codes[row]]


def join_tables(tables: Sequence[Table]) -> tuple[Table, list[str]]:
    """Join tables with the same columns, and name the columns that are numbers in some of them and text in others.

    In such a column, numbers become text, but not always exactly as they were written in the file.
    """
    first = tables[0]
    columns: dict[str, Column | UserError] = {}
    mixed = []
    for name in first.columns:
        parts = [table.columns[name] for table in tables]
        error = next((part for part in parts if isinstance(part, UserError)), None)
        arrays = [part for part in parts if isinstance(part, np.ndarray)]
        if error is not None:
            columns[name] = error
        elif len(arrays) == len(parts):
            columns[name] = np.concatenate(arrays)
        else:
            if not all(is_missing(array).all() for array in arrays):
                mixed.append(name)
            columns[name] = TextColumn.joined([table.as_text(name) for table in tables])
    return Table(first.path, columns, np.concatenate([table.rows for table in tables])), mixed


def is_missing(cells: np.ndarray) -> np.ndarray:
    """Which numbers or dates are missing."""
    missing: np.ndarray = np.isnat(cells) if cells.dtype.kind == "M" else np.isnan(cells)
    return missing


def _without_missing(values: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Text for the sorted distinct numbers or dates of a column; a missing one is the last, and gets code -1."""
    missing = is_missing(values)
    count = int((~missing).sum())
    codes = np.where(codes < count, codes, -1).astype(np.int32)
    return codes, tuple(_written(value) for value in values[:count].tolist())


def _written(value: object) -> str:
    if isinstance(value, float):
        return str(int(value)) if value % 1 == 0 else str(value)
    text = str(value)
    return text.removesuffix(" 00:00:00")


def check_columns(table: Table, needed: Collection[str]) -> None:
    """Raise if a table lacks columns; the message names all of them."""
    missing = [name for name in needed if name not in table.columns]
    if len(missing) == 1:
        table.check_has(missing[0])
    if missing:
        raise UserError(f"{table.path}: no columns {list_names(missing)}; it has {list_names(table.columns)}")
