"""Tables from CSV and Parquet files."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from verydeep.data.own._table import Table
from verydeep.errors import UserError, list_names, shorten

SUFFIXES = (".csv", ".parquet")

_MISSING = {"", "na", "n/a", "nan", "null", "?"}


def read_table(path: Path, delimiter: str = ",") -> Table:
    """Read a CSV or Parquet file; a table without rows is an error."""
    table = read_parquet(path) if path.suffix.lower() == ".parquet" else read_csv(path, delimiter)
    if not len(table):
        raise UserError(f"{path}: no rows of data")
    return table


def read_csv(path: Path, delimiter: str = ",") -> Table:
    """Read a CSV file in UTF-8 whose first row names the columns; NA, NaN, null, ? and empty cells are missing."""
    records = _records(path, delimiter)
    _, header = next(records, (1, []))
    names = [name.strip() for name in header]
    if not any(names):
        raise UserError(f"{path}: the file is empty; its first row must name the columns")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"{path}: row 1 names the column {twice!r} twice; each needs its own name")
    rows, cells = [], []
    for row, record in records:
        if len(record) != len(names):
            raise UserError(f"{path}: row {row} has {len(record)} cells, the header has {len(names)}; correct that row")
        rows.append(row)
        cells.append([parse_cell(text) for text in record])
    columns = np.array(cells, dtype=object).reshape(len(cells), len(names))
    return Table(path, {name: columns[:, i] for i, name in enumerate(names)}, np.array(rows, dtype=np.int64))


def _records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    row = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row, record in enumerate(csv.reader(file, delimiter=delimiter, strict=True), start=1):
                if record:
                    yield row, record
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as CSV in UTF-8 after row {row}: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None


def parse_cell(text: str) -> str | None:
    """The text of a cell without surrounding blanks; None if it is missing."""
    stripped = text.strip()
    return None if len(stripped) < 5 and stripped.lower() in _MISSING else stripped


def read_parquet(path: Path) -> Table:
    """Read a Parquet file: booleans become numbers, dictionaries text; row numbers saved by pandas are left out."""
    try:
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise UserError(f"{path}: reading Parquet needs pyarrow: pip install 'verydeep[parquet]'") from None
    try:
        return _from_arrow(path, pyarrow.parquet.ParquetFile(path).read())
    except UserError:
        raise
    except Exception as error:  # a broken file makes pyarrow raise many kinds of exceptions
        raise UserError(f"{path}: cannot be read as Parquet: {shorten(error)}") from None


def _from_arrow(path: Path, table: Any) -> Table:  # noqa: ANN401 - pyarrow has no types
    # The unnamed index that pandas saves holds the rows' former positions, which can give the class away when rows were
    # sorted or selected. An index with a name is a column, as in a CSV file.
    index = (table.schema.pandas_metadata or {}).get("index_columns", ())
    names = [name for name in table.column_names if name not in index or not re.fullmatch(r"__index_level_\d+__", name)]
    if len(set(names)) < len(names):
        raise UserError(f"{path}: two columns have the same name; it has {list_names(names)}")
    columns = {name: _parquet_column(table.column(name), f"{path}: column {name!r}") for name in names}
    return Table(path, columns, np.arange(1, table.num_rows + 1))


def _parquet_column(column: Any, where: str) -> np.ndarray | UserError:  # noqa: ANN401
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind, types = column.type, pa.types
    if any(test(kind) for test in (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal)):
        return np.array(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    if any(test(kind) for test in (types.is_string, types.is_large_string, types.is_null)):
        return np.array([None if value is None else parse_cell(value) for value in column.to_pylist()], dtype=object)
    return UserError(f"{where}: {kind} cannot be used; save it as a number or text, or list it in data.ignore")
