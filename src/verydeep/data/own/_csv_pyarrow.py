"""CSV read by pyarrow, where it is installed: it splits text into columns many times faster than Python."""

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import product
from os import SEEK_END, fsencode
from pathlib import Path
from typing import Any

import numpy as np

from verydeep.data.own._progress import report_progress
from verydeep.data.own._table import Column, Table
from verydeep.data.own._table_options import TableOptions
from verydeep.data.own._text_column import TextColumn
from verydeep.data.own._written import MISSING, parse_number

_BLOCK = 2**20  # bytes parsed at once
_MOST_COLUMNS = 10_000  # pyarrow needs much memory for each
_NULLS = sorted({"".join(letters) for word in MISSING for letters in product(*((c, c.upper()) for c in word))})


class NotForPyarrow(Exception):  # noqa: N818 - not an error: `csv` reads on
    """pyarrow is not installed, or might read the file differently than `csv`."""


def read_with_pyarrow(path: Path, names: list[str], options: TableOptions, rows: int | None) -> Iterator[Table]:
    """Read all rows after the header, in parts; raises `NotForPyarrow`, maybe after some parts.

    All cells are read as text. Columns in which all cells are numbers are converted here because that is fast; it gives
    the same bits as `float`.
    """
    if options.encoding != "utf-8" or len(names) > _MOST_COLUMNS or not find_spec("pyarrow"):
        raise NotForPyarrow
    if not _is_plain(path, options.delimiter):
        raise NotForPyarrow
    import pyarrow as pa  # type: ignore[import-untyped]

    try:
        yield from _tables(path, names, options, rows)
    except pa.ArrowInvalid:  # such as a row with too few cells; `csv` finds out which
        raise NotForPyarrow from None


def _tables(path: Path, names: list[str], options: TableOptions, rows: int | None) -> Iterator[Table]:
    import pyarrow as pa
    from pyarrow import csv

    numbers = [str(i) for i in range(len(names))]
    keep = {number: name for number, name in zip(numbers, names, strict=True) if name not in options.skip}
    # A file of pyarrow, not one of Python: after an error a thread may still read ahead, and one that needs Python's
    # lock while Python exits aborts the process.
    file = pa.OSFile(fsencode(path))
    reader = csv.open_csv(
        file,
        read_options=csv.ReadOptions(column_names=numbers, skip_rows=1, block_size=_BLOCK, use_threads=False),
        parse_options=csv.ParseOptions(delimiter=options.delimiter, newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types={number: pa.string() for number in keep},
            include_columns=list(keep),
            null_values=_NULLS,
            strings_can_be_null=True,
        ),
    )
    start = 2  # the header is row 1
    for block, batch in enumerate(reader, start=1):
        for offset in range(0, batch.num_rows, rows or max(1, batch.num_rows)):
            part = batch.slice(offset, rows)
            columns = {
                name: _column(part.column(i), options.decimal, options.keeps_text(name))
                for i, name in enumerate(keep.values())
            }
            yield Table(path, dict(columns), np.arange(start, start + part.num_rows))
            start += part.num_rows
        report_progress(path, block * _BLOCK)


def _column(cells: Any, decimal: str, keep_text: bool) -> Column:  # noqa: ANN401 - pyarrow has no types
    if not keep_text and decimal == ".":
        numbers = _numbers(cells)
        if numbers is not None:
            return numbers
    encoded = cells.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    text = TextColumn.of_codes(codes, encoded.dictionary.to_pylist(), decimal)
    return text if keep_text else text.numbers_if_possible()


def _numbers(cells: Any) -> np.ndarray | None:  # noqa: ANN401
    """All cells as finite numbers, NaN where missing; None if there are others."""
    import pyarrow as pa
    from pyarrow import compute

    first = cells.drop_null().slice(0, 1).to_pylist()
    if first and parse_number(first[0]) is None:  # a cast that fails is slow: it describes every error
        return None
    try:
        numbers = cells.cast(pa.float64())
    except pa.ArrowInvalid:
        try:
            numbers = compute.ascii_trim_whitespace(cells).cast(pa.float64())
        except pa.ArrowInvalid:
            return None
    values = numbers.to_numpy(zero_copy_only=False)
    finite = np.isfinite(values).sum() == len(values) - numbers.null_count  # nan(1) is a number for pyarrow only
    return np.array(values, dtype=np.float64) if finite else None


def _is_plain(path: Path, delimiter: str) -> bool:
    """Whether `csv` and pyarrow read a file in the same way.

    There must be no blank lines between rows, which pyarrow does not count, and quotes only around whole cells, or
    doubled inside them.
    """
    if not delimiter.isascii():
        return False
    beside_quotes = np.frombuffer(f'{delimiter}\r\n"'.encode(), np.uint8)
    quotes = 0
    for text in _windows(path):
        newline, carriage = text == ord("\n"), text == ord("\r")
        if (newline[:-1] & (newline[1:] | carriage[1:])).any() or (carriage[:-1] & carriage[1:]).any():
            return False
        places = 1 + np.flatnonzero(text[1:-1] == ord('"'))
        opening, closing = places[quotes % 2 :: 2], places[1 - quotes % 2 :: 2]
        if not np.isin(np.append(text[opening - 1], text[closing + 1]), beside_quotes).all():
            return False
        quotes += len(places)
    return quotes % 2 == 0


def _windows(path: Path) -> Iterator[np.ndarray]:
    """The bytes of a file, but the blank lines at its end, in blocks with one more byte on either side."""
    with path.open("rb") as file:
        size = file.seek(0, SEEK_END)
        file.seek(max(0, size - _BLOCK))
        end = size - min(size, _BLOCK) + len(file.read().rstrip(b"\r\n"))
        for start in range(0, end, _BLOCK):
            first = max(0, start - 1)
            file.seek(first)
            text = file.read(min(start + _BLOCK + 1, end) - first)
            before, after = b"" if start else b"\n", b"" if start + _BLOCK < end else b"\n"
            yield np.frombuffer(before + text + after, np.uint8)
