"""A column of text in little memory: every distinct value is stored once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from verydeep.data.own._written import Form, parse_all, parse_cell, parse_number


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column of text.

    Attributes:
        codes: For each row the index of its value, -1 where the cell is missing.
        values: The distinct values, without surrounding blanks.
        decimal: The decimal point of numbers in this column.
        is_category: Whether the column was declared to hold categories, as DataFrames can.
    """

    codes: np.ndarray
    values: tuple[str, ...]
    decimal: str = "."
    is_category: bool = False

    @classmethod
    def of(cls, cells: Sequence[str | None], decimal: str = ".") -> "TextColumn":
        """Number the distinct values of cells as they are in a file."""
        number: dict[str | None, int] = {}
        codes = [number.setdefault(cell, len(number)) for cell in cells]
        return cls.of_codes(np.array(codes, dtype=np.int32), list(number), decimal)

    @classmethod
    def of_codes(cls, codes: np.ndarray, raw: Sequence[str | None], decimal: str = ".") -> "TextColumn":
        """Strip the distinct cells of a file and find the missing ones; `codes` may hold -1."""
        number: dict[str, int] = {}
        target = np.full(len(raw) + 1, -1, dtype=np.int32)  # the last entry is for code -1
        for i, cell in enumerate(raw):
            value = None if cell is None else parse_cell(cell)
            if value is not None:
                target[i] = number.setdefault(value, len(number))
        return cls(target[codes], tuple(number), decimal)

    @classmethod
    def joined(cls, parts: Sequence["TextColumn"]) -> "TextColumn":
        """The rows of several columns, one after the other."""
        number: dict[str, int] = {}
        codes = []
        for part in parts:
            target = [number.setdefault(value, len(number)) for value in part.values]
            codes.append(np.array([*target, -1], dtype=np.int32)[part.codes])
        decimals = [part.decimal for part in parts if part.values]
        return cls(np.concatenate(codes), tuple(number), (decimals or ["."])[0])

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: np.ndarray) -> "TextColumn":
        return replace(self, codes=self.codes[rows])

    @cached_property
    def counts(self) -> np.ndarray:
        """How often each value occurs; 0 for values of rows that were left out."""
        return np.bincount(self.codes + 1, minlength=len(self.values) + 1)[1:]

    @property
    def distinct(self) -> list[str]:
        """The values that occur."""
        return [value for value, count in zip(self.values, self.counts, strict=True) if count]

    def expand(self, per_value: Sequence[object] | np.ndarray, missing: object, dtype: type) -> np.ndarray:
        """Give each row what belongs to its value, or `missing`."""
        table: np.ndarray = np.empty(len(self.values) + 1, dtype=dtype)
        table[:-1] = per_value
        table[-1] = missing
        return np.take(table, self.codes)  # code -1 is the last entry

    def text(self) -> np.ndarray:
        """The values as text, None where missing; whole numbers have no decimal point."""
        return self.expand(self.normalised, None, object)

    @property
    def normalised(self) -> list[str]:
        """The values, with numbers written in one way; so two of them may be equal."""
        return [normalised(value, self.decimal) for value in self.values]

    def parsed(self, form: Form) -> np.ndarray | None:
        """The values written in a form as float64, NaN where missing; None if any is written differently."""
        if not self.counts.all():
            return self._compact().parsed(form)
        values = parse_all(self.values, form, self.decimal)
        return None if values is None else self.expand(values, np.nan, np.float64)

    def numbers_if_possible(self) -> "np.ndarray | TextColumn":
        """The numbers of a column in which all cells are finite numbers or missing, else the column itself."""
        numbers = self.parsed("number")
        return self if numbers is None or np.isinf(numbers).any() else numbers

    def _compact(self) -> "TextColumn":
        used = np.flatnonzero(self.counts)
        target = np.full(len(self.values) + 1, -1, dtype=np.int32)
        target[used] = np.arange(len(used))
        return replace(self, codes=target[self.codes], values=tuple(self.values[i] for i in used))


def normalised(cell: str, decimal: str = ".") -> str:
    """Write 1.0 and 1e0 as 1, since they are the same class and category; 01 may be a code and stays."""
    if set(cell).isdisjoint(".,eE"):
        return cell
    value = parse_number(cell, decimal)
    if value is None:
        return cell
    if value % 1 == 0 and abs(value) < 2**53:  # larger integers are not exact in float64
        return str(int(value))
    return cell.replace(",", ".") if decimal == "," else cell
