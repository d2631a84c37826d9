"""Data that is already in memory: a DataFrame of pandas or polars, or a pair of arrays `(x, y)`.

DataFrames are recognised by what they offer, so that neither library is a dependency. Columns become what the same
columns of a Parquet file become, and everything after that is the same for files and for data in memory.
"""

import math
import numbers
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Literal

import numpy as np

from verydeep.data._config import DataConfig
from verydeep.data.own._array_files import as_raw_split, as_samples, check_targets
from verydeep.data.own._raw_split import RawSplit
from verydeep.data.own._table import Column, Table
from verydeep.data.own._target import split_off_target
from verydeep.data.own._text_column import TextColumn
from verydeep.errors import UserError, list_names

_NUMBER = numbers.Real | Decimal


@dataclass(frozen=True)
class InMemory:
    """Data that the user holds.

    Attributes:
        data: A DataFrame, or a pair of arrays.
        kind: Which options apply to it.
        name: What messages and the dataset call it.
    """

    data: Any
    kind: Literal["table", "array"]
    name: str

    def read(self, config: DataConfig) -> dict[str, RawSplit]:
        """All samples as the split `train`."""
        if self.kind == "table":
            table = table_of(self.data)
            if not len(table):
                raise UserError(f"{self.name}: no rows of data")
            return {"train": split_off_target(table, config)}
        return {"train": _split_of(*self.data)}


def in_memory(source: object) -> InMemory | None:
    """Recognise data in memory; None for anything else, such as a path."""
    if is_dataframe(source):
        return InMemory(source, "table", "DataFrame")
    if isinstance(source, tuple | list) and len(source) == 2 and not any(isinstance(part, str) for part in source):
        return InMemory(source, "array", "arrays")
    return None


def is_dataframe(source: object) -> bool:
    """Whether this is a DataFrame of pandas or polars."""
    return all(hasattr(source, name) for name in ("columns", "dtypes", "__getitem__", "__len__"))


def table_of(frame: Any) -> Table:  # noqa: ANN401 - of pandas or polars
    """The columns of a DataFrame by name; its index is left out, and rows are counted from 0."""
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise UserError(f"DataFrame: two columns have the same name; it has {list_names(names)}")
    columns = {name: _column(frame[key], name) for name, key in zip(names, frame.columns, strict=True)}
    return Table("DataFrame", columns, np.arange(len(frame)))


def _column(series: Any, name: str) -> Column | UserError:  # noqa: ANN401
    cells = np.asarray(series.to_numpy())
    is_category = str(series.dtype).startswith(("category", "Categorical", "Enum"))
    if cells.dtype.kind == "M":
        return cells.astype("datetime64[us]")
    if cells.dtype.kind in "buif" and not is_category:
        return cells.astype(np.float64)
    return _of_objects(cells, name, is_category) if cells.dtype.kind in "buifOUT" else _unsupported(name, cells.dtype)


def _of_objects(cells: np.ndarray, name: str, is_category: bool) -> Column | UserError:
    values = [None if _is_missing(cell) else cell for cell in cells.tolist()]
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, date) for value in present):
        return np.array([None if value is None else _without_zone(value) for value in values], dtype="datetime64[us]")
    if present and all(isinstance(value, _NUMBER) for value in present) and not is_category:
        return np.array([np.nan if value is None else float(value) for value in values])
    wrong = next((value for value in present if not isinstance(value, str | _NUMBER)), None)
    if wrong is not None:
        return _unsupported(name, type(wrong).__name__)
    return replace(TextColumn.of([None if value is None else str(value) for value in values]), is_category=is_category)


def _without_zone(moment: date) -> date:
    """The time in UTC, if a time zone is given."""
    zoned = isinstance(moment, datetime) and moment.tzinfo is not None
    return moment.astimezone(UTC).replace(tzinfo=None) if zoned else moment  # type: ignore[attr-defined]


def _unsupported(name: str, kind: object) -> UserError:
    return UserError(
        f"DataFrame: column {name!r}: {kind} cannot be used; make it a number or text, or list it in data.ignore"
    )


def _is_missing(cell: object) -> bool:
    """None, NaN, or the missing values of pandas, which cannot be compared."""
    return (
        cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and math.isnan(cell))
    )


def _split_of(x: Any, y: Any) -> RawSplit:  # noqa: ANN401
    if is_dataframe(x):
        raise UserError("x is a DataFrame; give one DataFrame that also holds the target, and target='...'")
    samples = as_samples(_array(x), "x")
    labels = _array(y)
    if labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels.ravel()):
        labels = labels.astype(str)
    return as_raw_split(samples, check_targets(labels, len(samples), "y"), "y")


def _array(values: Any) -> np.ndarray:  # noqa: ANN401
    try:
        return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    except ValueError as error:  # nested lists of different lengths
        raise UserError(f"expected arrays (x, y): {error}") from None
