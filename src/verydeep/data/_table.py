"""A table in memory, its cells kept as they were read until it is known what each column is."""

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
            A column that cannot be used is the error that says why, raised when it is asked for: it may be ignored.
        rows: The number of each row as an editor shows it: in a CSV file the header is row 1.
    """

    path: Path
    columns: dict[str, np.ndarray | UserError]
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, chosen: Tensor) -> "Table":
        index = chosen.numpy()
        columns = {n: c if isinstance(c, UserError) else c[index] for n, c in self.columns.items()}
        return Table(self.path, columns, self.rows[index])

    def place(self, row: int, column: str) -> str:
        """Where the cell of the i-th row is, for errors."""
        return f"{self.path}: row {self.rows[row]}, column {column!r}"

    def check_has(self, column: str) -> None:
        """Refuse the name of a column that is not there."""
        if column not in self.columns:
            raise UserError(f"{self.path}: no column {column!r}; it has {listed(self.columns)}")

    def cells(self, column: str) -> np.ndarray:
        """A column by name."""
        self.check_has(column)
        cells = self.columns[column]
        if isinstance(cells, UserError):
            raise cells
        return cells

    def text(self, column: str) -> np.ndarray:
        """A column as text, None where it is missing; whole numbers are written without a point."""
        cells = self.cells(column)
        if cells.dtype != np.float64:
            return np.array([None if cell is None else _plain(cell) for cell in cells], dtype=object)
        return np.array([None if np.isnan(v) else str(int(v)) if v % 1 == 0 else str(v) for v in cells], dtype=object)

    def floats(self, column: str) -> np.ndarray | None:
        """A column as float64, NaN where it is missing; None if any cell is not a number."""
        cells = self.cells(column)
        if cells.dtype == np.float64:
            return cells
        texts = ["nan" if cell is None else cell for cell in cells]
        if any("_" in text for text in texts):
            return None
        try:
            return np.array(list(map(float, texts)))
        except ValueError:
            return None

    def numbers(self, column: str) -> np.ndarray:
        """The same, but cells that are not finite numbers of float32 are refused by their place."""
        values, cells = self.floats(column), self.cells(column)
        if values is None:
            row = next(i for i, cell in enumerate(cells) if cell is not None and not is_number(cell))
            raise UserError(
                f"{self.place(row, column)}: {shortened(cells[row])} is not a number, but other rows hold numbers; "
                "mend it, or name the column in `categorical`"
            )
        bad = np.flatnonzero(np.abs(values) > np.finfo(np.float32).max)
        if len(bad):
            place = self.place(int(bad[0]), column)
            raise UserError(f"{place}: {cells[bad[0]]} is infinite or too large for float32; mend or remove it")
        return values


def is_number(cell: str) -> bool:
    """Whether a cell holds a number; 1_000 is text, although Python would take it."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _plain(cell: str) -> str:
    """1.0 and 1e0 as 1, which is the same class and category; 01 may be a code and stays."""
    if set(cell).isdisjoint(".eE") or not is_number(cell):
        return cell
    value = float(cell)
    exact = abs(value) < 2**53  # beyond, float64 would make one number of several
    return str(int(value)) if exact and value % 1 == 0 else cell
