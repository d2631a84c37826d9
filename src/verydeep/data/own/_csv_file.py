"""CSV, read in parts of bounded size by Python's `csv` or, several times faster, by pyarrow.

pyarrow only reads what both understand in the same way; for anything else, and for every error message, `csv` is used.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from verydeep.data.own._csv_pyarrow import NotForPyarrow, read_with_pyarrow
from verydeep.data.own._progress import report_progress
from verydeep.data.own._table import Column, Table
from verydeep.data.own._table_options import TableOptions
from verydeep.data.own._text_column import TextColumn
from verydeep.data.own._written import plain_numbers
from verydeep.errors import UserError

_CELLS = 10_000  # converted at once: their strings stay in the cache
_LEAST_ROWS = 64  # for tables with very many columns

_OTHER_DELIMITERS = {";": "';'", "\t": r"'\t'", "|": "'|'", ",": "','"}


def iterate_csv(source: Path | BinaryIO, options: TableOptions, rows: int | None = None) -> Iterator[Table]:
    """Read a CSV file, or a stream of bytes, in parts of at most `rows` rows; at least one part, maybe without rows.

    The first row names the columns. Blank lines are skipped; NA, NaN, null, ? and empty cells are missing.
    """
    path = source if isinstance(source, Path) else "standard input"
    if isinstance(source, Path) and source.suffix.lower() == ".tsv" and options.delimiter == ",":
        options = replace(options, delimiter="\t")
    with _Records(source, path, options) as records:
        names = _header(records, options)
        done = 0
        if isinstance(source, Path) and records.header_is_first_line:
            try:
                for table in read_with_pyarrow(source, names, options, rows):
                    yield table
                    done += len(table)
            except NotForPyarrow:
                pass
            else:
                if done:
                    return
        limit = max(_LEAST_ROWS, _CELLS // len(names))
        yield from _tables(records, names, options, limit if rows is None else min(rows, limit), done)


class _Records:
    """The records of a CSV file, blank ones left out, with their numbers; its errors name the place."""

    def __init__(self, source: Path | BinaryIO, path: Path | str, options: TableOptions) -> None:
        self.path, self.options, self.row = path, options, 0
        try:
            self.file = source.open("rb") if isinstance(source, Path) else source
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror}") from None
        encoding = "utf-8-sig" if options.encoding == "utf-8" else options.encoding
        self.text = io.TextIOWrapper(self.file, encoding=encoding, newline="")
        self.reader = csv.reader(self.text, delimiter=options.delimiter, strict=True)

    def __enter__(self) -> "_Records":
        return self

    def __exit__(self, *_: object) -> None:
        if self.text.closed:  # the garbage collector came first, since an error left the reader unfinished
            return
        self.text.detach()
        if isinstance(self.path, Path):
            self.file.close()

    @property
    def header_is_first_line(self) -> bool:
        """Whether exactly one line has been read."""
        return self.row == 1 and self.reader.line_num == 1

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        try:
            for record in self.reader:
                self.row += 1
                if record:
                    yield self.row, record
        except UnicodeDecodeError as error:
            raise self._not_decodable(error) from None
        except UnicodeError as error:  # no byte order mark
            raise UserError(f"{self.path}: cannot be read as CSV in {self.options.encoding.upper()}: {error}") from None
        except csv.Error as error:
            raise UserError(
                f"{self.path}: cannot be read as CSV in {self.options.encoding.upper()} after row {self.row}: {error}"
            ) from None
        except OSError as error:
            raise UserError(f"{self.path}: cannot be read: {error.strerror}") from None

    def _not_decodable(self, error: UnicodeDecodeError) -> UserError:
        encoding = self.options.encoding
        if encoding == "utf-8" and self.row == 0:
            has_mark = error.start == 0 and error.object[:2] in (b"\xff\xfe", b"\xfe\xff")
            if has_mark or error.object.count(0) > len(error.object) // 4:
                return _is_utf16(self.path)
        place = f"{self.path}: cannot be read as CSV in {encoding.upper()} after row {self.row}"
        hint = "; if it was saved in an older encoding, set data.encoding = 'latin-1'" if encoding == "utf-8" else ""
        return UserError(f"{place}: {error.reason}, byte {error.object[error.start]:#04x}{hint}")


def _is_utf16(path: Path | str) -> UserError:
    return UserError(f"{path}: is UTF-16 text, not UTF-8; set data.encoding = 'utf-16', or save it as UTF-8")


def _header(records: _Records, options: TableOptions) -> list[str]:
    path = records.path
    _, header = next(iter(records), (1, []))
    names = [name.strip() for name in header]
    if not any(names):
        raise UserError(f"{path}: the file is empty; its first row must name the columns")
    if any("\0" in name for name in names) and options.encoding == "utf-8":
        raise _is_utf16(path)
    if len(names) == 1 and (hint := _other_delimiter(names[0], options.delimiter)):
        raise UserError(f"{path}: row 1 has no {options.delimiter!r}; {hint}")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise UserError(f"{path}: row 1 names the column {name!r} twice; each needs its own name")
    return names


def _other_delimiter(header: str, delimiter: str) -> str:
    """Advice if another character seems to separate the columns."""
    count, found = max((header.count(mark), mark) for mark in _OTHER_DELIMITERS if mark != delimiter)
    if not count:
        return ""
    name = _OTHER_DELIMITERS[found]
    return f"{name} seems to separate the columns: set data.delimiter = {name} (--delimiter {name})"


def _tables(records: _Records, names: list[str], options: TableOptions, rows: int, done: int) -> Iterator[Table]:
    numbered = islice(records, done, None)
    keep = [(i, name) for i, name in enumerate(names) if name not in options.skip]
    first = not done
    while (part := list(islice(numbered, rows))) or first:
        first = False
        numbers, cells = [row for row, _ in part], [record for _, record in part]
        if set(map(len, cells)) - {len(names)}:
            row, record = next((row, record) for row, record in part if len(record) != len(names))
            raise UserError(
                f"{records.path}: row {row} has {len(record)} cells, the header has {len(names)}; correct that row"
                + _unquoted_hint(record, names, options)
            )
        columns = list(zip(*cells, strict=True)) if cells else [()] * len(names)
        kept: dict[str, Column | UserError] = {
            name: column_of(columns[i], options.decimal, options.keeps_text(name)) for i, name in keep
        }
        yield Table(Path(records.path), kept, np.array(numbers, dtype=np.int64))  # rows are counted as in a file
        report_progress(records.path, records.file.tell() if isinstance(records.path, Path) else 0)


def _unquoted_hint(record: Sequence[str], names: Sequence[str], options: TableOptions) -> str:
    """Advice for a row with too many cells because of decimal commas, or of another delimiter."""
    header, row = (options.delimiter.join(cells) for cells in (names, record))
    for mark, name in _OTHER_DELIMITERS.items():
        if mark != options.delimiter and header.count(mark) and header.count(mark) == row.count(mark):
            return f", or set data.delimiter = {name} if that separates the columns"
    return ""


def column_of(cells: Sequence[str], decimal: str, keep_text: bool) -> Column:
    """A column as numbers if all its cells are numbers or missing, else as text."""
    if not keep_text and decimal == ".":
        numbers = plain_numbers(cells)
        if numbers is not None and np.isfinite(numbers).all():
            return numbers
    text = TextColumn.of(cells, decimal)
    return text if keep_text else text.numbers_if_possible()
