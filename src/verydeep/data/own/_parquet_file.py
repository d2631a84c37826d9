"""Parquet, read by pyarrow in parts of bounded size."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from verydeep.data.own._progress import report_fraction
from verydeep.data.own._table import Column, Table
from verydeep.data.own._table_options import TableOptions
from verydeep.data.own._text_column import TextColumn
from verydeep.errors import UserError, install_command, list_names, shorten

_ROWS = 100_000  # read at once


def iterate_parquet(path: Path, options: TableOptions, rows: int | None = None) -> Iterator[Table]:
    """Read a Parquet file in parts of at most `rows` rows; at least one part, maybe without rows.

    Booleans become numbers and dictionaries text; row numbers saved by pandas are left out.
    """
    try:
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise UserError(f"{path}: reading Parquet needs pyarrow: {install_command('parquet')}") from None
    try:
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as file:  # it would keep all that was read
            names = _names(path, file.schema_arrow)
            kept = [name for name in names if name not in options.skip]
            start = 1
            for batch in file.iter_batches(min(rows or _ROWS, _ROWS), columns=kept):
                yield _table(path, batch, kept, options, start)
                start += batch.num_rows
                report_fraction(path.name, (start - 1) / file.metadata.num_rows)
            if start == 1:
                yield _table(path, file.schema_arrow.empty_table(), kept, options, start)
    except UserError:
        raise
    except Exception as error:  # a broken file makes pyarrow raise many kinds of exceptions
        raise UserError(f"{path}: cannot be read as Parquet: {shorten(error)}") from None


def _names(path: Path, schema: Any) -> list[str]:  # noqa: ANN401 - pyarrow has no types
    # The unnamed index that pandas saves holds the rows' former positions, which can give the class away when rows were
    # sorted or selected. An index with a name is a column, as in a CSV file.
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    names = [name for name in schema.names if name not in index or not re.fullmatch(r"__index_level_\d+__", name)]
    if len(set(names)) < len(names):
        raise UserError(f"{path}: two columns have the same name; it has {list_names(names)}")
    return names


def _table(path: Path, batch: Any, names: list[str], options: TableOptions, start: int) -> Table:  # noqa: ANN401
    columns = {
        name: from_arrow(_as_written(batch.column(name), name, options), f"{path}: column {name!r}") for name in names
    }
    return Table(path, columns, np.arange(start, start + batch.num_rows))


def _as_written(column: Any, name: str, options: TableOptions) -> Any:  # noqa: ANN401
    """Whole numbers as text if they are to be kept as written: in float64, large ones lose digits."""
    import pyarrow as pa

    wanted = options.all_text or name in options.text
    return column.cast(pa.string()) if wanted and pa.types.is_integer(column.type) else column


def from_arrow(column: Any, where: str) -> Column | UserError:  # noqa: ANN401
    """A column of pyarrow as one of a table, or the error to raise if it is used."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type) and not pa.types.is_string(column.type.value_type):
        column = column.cast(column.type.value_type)
    kind, types = column.type, pa.types
    if any(test(kind) for test in (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal)):
        return np.array(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    if types.is_date(kind) or types.is_timestamp(kind):
        moments = column.cast(pa.timestamp("us"), safe=False)  # a time zone is dropped: the time is UTC
        return np.array(moments.to_numpy(zero_copy_only=False), dtype="datetime64[us]")
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind):
        encoded = column if types.is_dictionary(kind) else column.dictionary_encode()
        codes = encoded.indices.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
        return TextColumn.of_codes(codes, encoded.dictionary.to_pylist())
    return UserError(f"{where}: {kind} cannot be used; save it as a number or text, or list it in data.ignore")
