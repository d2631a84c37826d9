"""A table in memory; cells stay as they were read until it is known whether a column is numeric or categorical."""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from torch import Tensor

from verydeep.errors import UserError, list_names, shorten


@dataclass(frozen=True)
class Table:
    """Named columns of one file.

    Attributes:
        path: The file, for error messages; for a table without one, what it is called.
        columns: Columns by name: float64 with NaN for missing numbers, or objects, text with None for missing cells. A
            column of an unsupported type is stored as the error to raise when it is used, since it may be ignored.
        rows: Row numbers as an editor shows them, so in a CSV file the header is row 1; without a file, from 0.
    """

    path: Path | str
    columns: dict[str, np.ndarray | UserError]
    rows: np.ndarray

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

    def cells(self, column: str) -> np.ndarray:
        """Get a column by name."""
        self.check_has(column)
        cells = self.columns[column]
        if isinstance(cells, UserError):
            raise cells
        return cells

    def text(self, column: str) -> np.ndarray:
        """Get a column as text, with None for missing cells; whole numbers have no decimal point."""
        cells = self.cells(column)
        if cells.dtype != np.float64:
            return np.array([None if cell is None else _normalised(cell) for cell in cells], dtype=object)
        return np.array([None if np.isnan(v) else str(int(v)) if v % 1 == 0 else str(v) for v in cells], dtype=object)

    def floats(self, column: str) -> np.ndarray | None:
        """Get a column as float64, with NaN for missing cells; None if any cell is not a number."""
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
        """Get a column as float64; raise at the first cell that is not a number or not finite in float32."""
        values, cells = self.floats(column), self.cells(column)
        if values is None:
            row = next(i for i, cell in enumerate(cells) if cell is not None and not is_number(cell))
            raise UserError(
                f"{self.place(row, column)}: {shorten(cells[row])} is not a number, but other rows hold numbers; "
                "correct it, or list the column in data.categorical"
            )
        bad = np.flatnonzero(np.abs(values) > np.finfo(np.float32).max)
        if len(bad):
            place = self.place(int(bad[0]), column)
            raise UserError(f"{place}: {cells[bad[0]]} is infinite or too large for float32; correct or remove it")
        return values


def is_number(cell: str) -> bool:
    """Whether a cell holds a number; 1_000 is text, although Python's `float` accepts it."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _normalised(cell: str) -> str:
    """Write 1.0 and 1e0 as 1, since they are the same class and category; 01 may be a code and stays."""
    if set(cell).isdisjoint(".eE") or not is_number(cell):
        return cell
    value = float(cell)
    exact = abs(value) < 2**53  # larger integers are not exact in float64
    return str(int(value)) if exact and value % 1 == 0 else cell
