"""A table in memory, its cells kept as they were read until it is known what each column is."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from verydeep.data._messages import listed, shortened
from verydeep.errors import UserError


@dataclass(frozen=True)
class Table:
    """Named columns of one file.

    Attributes:
        path: The file, for errors.
        columns: By name, float64 with NaN where a number is missing, or objects: text, and None where it is missing.
        rows: The number of each row as an editor shows it: in a CSV file the header is row 1.
    """

    path: Path
    columns: dict[str, np.ndarray]
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, chosen: Tensor) -> "Table":
        index = chosen.numpy()
        return Table(self.path, {name: cells[index] for name, cells in self.columns.items()}, self.rows[index])

    def place(self, row: int, column: str) -> str:
        """Where the cell of the i-th row is, for errors."""
        return f"{self.path}: row {self.rows[row]}, column {column!r}"

    def cells(self, column: str) -> np.ndarray:
        """A column by name."""
        if column not in self.columns:
            raise UserError(f"{self.path}: no column {column!r}; it has {listed(self.columns)}")
        return self.columns[column]

    def text(self, column: str) -> np.ndarray:
        """A column as text, None where it is missing; whole numbers are written without a point."""
        cells = self.cells(column)
        if cells.dtype != np.float64:
            return cells
        return np.array([None if np.isnan(v) else str(int(v)) if v % 1 == 0 else str(v) for v in cells], dtype=object)

    def numbers(self, column: str) -> np.ndarray:
        """A column as float64, NaN where it is missing; anything else is refused by its place."""
        cells = self.cells(column)
        if cells.dtype == np.float64:
            values = cells
        else:
            values = np.array([self._number(i, column, cell) for i, cell in enumerate(cells)], dtype=np.float64)
        bad = np.flatnonzero(np.abs(values) > np.finfo(np.float32).max)
        if len(bad):
            place = self.place(int(bad[0]), column)
            raise UserError(f"{place}: {cells[bad[0]]} is infinite or too large for float32; mend or remove it")
        return values

    def _number(self, row: int, column: str, cell: str | None) -> float:
        value = math.nan if cell is None else parse_number(cell)
        if value is None:
            raise UserError(
                f"{self.place(row, column)}: {shortened(cell)} is not a number, but other rows hold numbers; "
                f"mend it, or name the column in `categorical`"
            )
        return value


def parse_number(cell: str) -> float | None:
    """The number a cell holds, or None for text; 1_000 is text, although Python would take it."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None
