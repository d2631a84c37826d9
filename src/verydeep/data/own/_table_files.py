"""Tables from CSV and Parquet files."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from verydeep.data.own._csv_file import iterate_csv
from verydeep.data.own._parquet_file import iterate_parquet
from verydeep.data.own._table import Table, join_tables
from verydeep.data.own._table_options import DEFAULT, TableOptions
from verydeep.errors import UserError
from verydeep.files import require_regular

SUFFIXES = (".csv", ".tsv", ".parquet")


def iterate_tables(
    source: Path | BinaryIO, options: TableOptions = DEFAULT, rows: int | None = None
) -> Iterator[Table]:
    """Read a table in parts of at most `rows` rows, so that memory is bounded; at least one part, maybe without rows.

    A column may be numbers in one part and text in another. Name columns in `options.text` to get them as written.

    Args:
        source: A CSV or Parquet file, or a stream of bytes with CSV such as `sys.stdin.buffer`.
        options: How it is to be read.
        rows: The largest number of rows of a part; by default, what is fast.
    """
    if isinstance(source, Path):
        require_regular(source)
    if isinstance(source, Path) and source.suffix.lower() == ".parquet":
        return iterate_parquet(source, options, rows)
    return iterate_csv(source, options, rows)


def read_table(source: Path | BinaryIO, options: TableOptions = DEFAULT) -> Table:
    """Read a whole table; one without rows is an error."""
    table, mixed = join_tables(list(iterate_tables(source, options)))
    if mixed:  # rare: what was taken for numbers in one part must be read again as it is written
        return read_table(source, replace(options, text=options.text | set(mixed)))
    if not len(table):
        raise UserError(f"{table.path}: no rows of data")
    return table
