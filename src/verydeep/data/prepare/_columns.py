"""From a table's columns to features: gaps are filled, numbers and dates standardised, categories one-hot encoded.

What was fitted is kept as plain numbers and text, so that a run can save it as JSON and prepare new rows in the same
way without unpickling anything.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from verydeep.data.own._table import Table, check_columns
from verydeep.data.own._written import Form
from verydeep.errors import UserError, list_names

PERIODS = {"year": 365.2425, "week": 7.0, "day": 1.0}
"""The cycles of dates, in days."""


@dataclass(frozen=True)
class NumberColumn:
    """A numeric column: (x - mean) / deviation, with `fill` (the median) for missing values.

    Attributes:
        form: How the numbers are written.
        gaps: Whether a second feature is 1 where the value is missing, since training rows had gaps.
    """

    name: str
    fill: float
    mean: float
    deviation: float
    form: Form = "number"
    gaps: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features."""
        return (self.name, f"{self.name} is missing") if self.gaps else (self.name,)

    def encode(self, table: Table) -> np.ndarray:
        """Encode the column as `(rows, features)`."""
        values = table.numbers(self.name, self.form)
        missing = np.isnan(values)
        scaled = (np.where(missing, self.fill, values) - self.mean) / self.deviation
        bad = np.flatnonzero(np.abs(scaled) > np.finfo(np.float32).max)
        if len(bad):
            raise UserError(f"{table.place(int(bad[0]), self.name)}: {values[bad[0]]} is far outside the training data")
        return np.stack([scaled, missing], axis=1) if self.gaps else scaled[:, None]


@dataclass(frozen=True)
class CategoryColumn:
    """A one-hot encoded column, with `fill` (the most frequent value) for missing cells; a new value is all zeros.

    Attributes:
        gaps: Whether a last feature is 1 where the value is missing, since training rows had gaps.
    """

    name: str
    fill: str
    values: tuple[str, ...]
    gaps: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features."""
        return (*(f"{self.name}={v}" for v in self.values), *((f"{self.name} is missing",) if self.gaps else ()))

    def encode(self, table: Table) -> np.ndarray:
        """Encode the column as `(rows, features)`."""
        codes = self._codes(table)
        encoded = np.zeros((len(codes), len(self.features)), dtype=bool)
        missing = codes == len(self.values)
        rows = np.flatnonzero((codes >= 0) & ~missing)
        encoded[rows, codes[rows]] = True
        encoded[missing, self.values.index(self.fill)] = True
        if self.gaps:
            encoded[:, -1] = missing
        return encoded

    def unknown(self, table: Table) -> dict[str, int]:
        """The values that the training rows did not have, and how often each of them occurs."""
        cells = table.text(self.name)[self._codes(table) < 0]
        values, counts = np.unique(cells.astype(str), return_counts=True)
        return dict(zip(values.tolist(), counts.tolist(), strict=True))

    def _codes(self, table: Table) -> np.ndarray:
        """For each row the index of its value, -1 for a new one, and the number of values for a missing one."""
        number = {value: i for i, value in enumerate(self.values)}
        column = table.as_text(self.name)
        known = [number.get(value, -1) for value in column.normalised]
        return column.expand(known, len(self.values), np.int64)


@dataclass(frozen=True)
class DateColumn:
    """A column of dates: the standardised number of days since 1970, and sine and cosine for each cycle.

    Attributes:
        fill: The median, for missing dates.
        cycles: `year`, `week` and `day`, as far as the training rows cover a whole one.
        gaps: Whether a last feature is 1 where the date is missing, since training rows had gaps.
    """

    name: str
    fill: float
    mean: float
    deviation: float
    form: Form
    cycles: tuple[str, ...] = ()
    gaps: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features."""
        waves = (f"{self.name}: {wave} of the {cycle}" for cycle in self.cycles for wave in ("sine", "cosine"))
        return (f"{self.name}: days", *waves, *((f"{self.name} is missing",) if self.gaps else ()))

    def encode(self, table: Table) -> np.ndarray:
        """Encode the column as `(rows, features)`."""
        days = table.numbers(self.name, self.form)
        missing = np.isnan(days)
        days = np.where(missing, self.fill, days)
        blocks = [(days - self.mean) / self.deviation]
        for cycle in self.cycles:
            angle = 2 * np.pi * days / PERIODS[cycle]
            blocks += [np.sin(angle), np.cos(angle)]
        return np.stack([*blocks, missing] if self.gaps else blocks, axis=1)


@dataclass(frozen=True)
class IgnoredColumn:
    """A column that was left out, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class TablePreparation:
    """Turns rows of a table into samples: the numeric columns first, then the categories, then the dates.

    Attributes:
        numbers: The numeric columns.
        categories: The columns of text.
        dates: The columns of dates.
        ignored: Columns that were left out because nothing can be learnt from them.

    Example:
        >>> import numpy as np
        >>> from verydeep.data import load_dataset
        >>> lines = [f"{i % 7},{'red' if i % 2 else 'blue'},{i % 3}" for i in range(40)]
        >>> _ = open("dots.csv", "w").write("size,colour,label" + chr(10) + chr(10).join(lines))
        >>> load_dataset("dots.csv").preparation.features
        ('size', 'colour=blue', 'colour=red')
    """

    numbers: tuple[NumberColumn, ...]
    categories: tuple[CategoryColumn, ...]
    dates: tuple[DateColumn, ...] = ()
    ignored: tuple[IgnoredColumn, ...] = ()

    @property
    def columns(self) -> tuple[NumberColumn | CategoryColumn | DateColumn, ...]:
        """The columns in the order of their features."""
        return (*self.numbers, *self.categories, *self.dates)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns that a table must have."""
        return tuple(column.name for column in self.columns)

    @property
    def text_columns(self) -> frozenset[str]:
        """The columns that a reader must not turn into numbers, for `TableOptions.text`."""
        return frozenset(column.name for column in self.categories)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features, in the order of the samples' values."""
        return tuple(name for column in self.columns for name in column.features)

    def __call__(self, table: Table) -> Tensor:
        """Encode a table as samples `(rows, features)`, float32; the error names all columns that cannot be encoded."""
        check_columns(table, self.names)
        samples = np.empty((len(table), sum(len(column.features) for column in self.columns)), dtype=np.float32)
        at, errors = 0, []
        for column in self.columns:
            width = len(column.features)
            try:
                samples[:, at : at + width] = column.encode(table)
            except UserError as error:
                errors.append(error)
            at += width
        raise_all(table, errors)
        return torch.from_numpy(samples)

    def unknown_categories(self, table: Table) -> dict[str, dict[str, int]]:
        """For each column with values that the training rows did not have: these values and how often they occur."""
        found = {column.name: column.unknown(table) for column in self.categories}
        return {name: values for name, values in found.items() if values}

    def describe(self) -> tuple[str, ...]:
        """What each column was taken for, one line per kind."""
        lines = []
        if self.numbers:
            lines.append(_kind_line("number", self.numbers, _percentages(self.numbers)))
        if self.categories:
            features = sum(len(column.features) for column in self.categories)
            lines.append(_kind_line("category", self.categories, [f"{features} features"]))
        if self.dates:
            cycles = [f"{column.name!r}: {_date_features(column)}" for column in self.dates[:3]]
            lines.append(_kind_line("date", self.dates, cycles))
        return (*lines, *(f"ignored {column.name!r}: {column.reason}" for column in self.ignored))


def raise_all(table: Table, errors: list[UserError]) -> None:
    """Raise one error that names all columns that cannot be used, if there are any."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        lines = [str(error).removeprefix(f"{table.path}: ") for error in errors]
        more = f"; and {len(lines) - 5} more" if len(lines) > 5 else ""
        raise UserError(f"{table.path}: {len(lines)} columns cannot be used: {'; '.join(lines[:5])}{more}")


def _kind_line(kind: str, columns: tuple[NumberColumn | CategoryColumn | DateColumn, ...], notes: Iterable[str]) -> str:
    plural = {"number": "numbers", "category": "categories", "date": "dates"}[kind]
    gaps = [column.name for column in columns if column.gaps]
    listed = [*notes, *([f"with gaps: {list_names(gaps)}"] if gaps else [])]
    return f"{len(columns)} {kind if len(columns) == 1 else plural}" + (f" ({'; '.join(listed)})" if listed else "")


def _percentages(numbers: tuple[NumberColumn, ...]) -> list[str]:
    words = {"percent": "percentages", "grouped": "with thousands separators", "boolean": "true or false"}
    found = {form: [column.name for column in numbers if column.form == form] for form in words}
    return [f"{words[form]}: {list_names(names)}" for form, names in found.items() if names]


def _date_features(column: DateColumn) -> str:
    order = column.form.removesuffix(" date")
    return ", ".join(
        [order.upper() if order == "iso" else order, "days", *(f"cycle of the {c}" for c in column.cycles)]
    )
