"""From a table's columns to features: missing cells are filled, numbers standardised, categories one-hot encoded.

scikit-learn fits on the training rows only. The fitted values are kept as plain numbers and text, so that a run can
save them as JSON and prepare new rows in the same way without unpickling anything.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from verydeep.data._config import DataConfig
from verydeep.data.own._table import Table, is_number
from verydeep.errors import UserError, shorten

_MAX_CATEGORIES = 1000


@dataclass(frozen=True)
class NumberColumn:
    """A numeric column: (x - mean) / deviation, with `fill` (the median) for missing values."""

    name: str
    fill: float
    mean: float
    deviation: float

    def encode(self, table: Table) -> np.ndarray:
        """Encode the column as `(rows, 1)`."""
        values = table.numbers(self.name)
        scaled = (np.where(np.isnan(values), self.fill, values) - self.mean) / self.deviation
        bad = np.flatnonzero(np.abs(scaled) > np.finfo(np.float32).max)
        if len(bad):
            raise UserError(f"{table.place(int(bad[0]), self.name)}: {values[bad[0]]} is far outside the training data")
        return scaled[:, None]


@dataclass(frozen=True)
class CategoryColumn:
    """A one-hot encoded column, with `fill` (the most frequent value) for missing cells; a new value is all zeros."""

    name: str
    fill: str
    values: tuple[str, ...]

    def encode(self, table: Table) -> np.ndarray:
        """Encode the column as `(rows, values)`."""
        number = {value: i for i, value in enumerate(self.values)}
        codes = [number.get(self.fill if cell is None else cell, -1) for cell in table.text(self.name)]
        return np.equal.outer(codes, np.arange(len(self.values)))


@dataclass(frozen=True)
class TablePreparation:
    """Turns rows of a table into samples: the numeric columns first, then the categorical ones."""

    numbers: tuple[NumberColumn, ...]
    categories: tuple[CategoryColumn, ...]

    def __call__(self, table: Table) -> Tensor:
        """Encode a table as samples `(rows, features)`, float32."""
        blocks = [column.encode(table) for column in self.numbers]
        blocks += [column.encode(table) for column in self.categories]
        return torch.from_numpy(np.concatenate(blocks, axis=1, dtype=np.float32))


def fit_table(train: Table, config: DataConfig) -> TablePreparation:
    """Fit the encoding of each column to the training rows."""
    if config.preprocess not in ("paper", "standardise", "none"):
        raise UserError(
            f"{train.path}: data.preprocess = '{config.preprocess}' is for images; a table can be standardised"
        )
    names = list(train.columns)
    numeric = [name for name in names if name not in config.categorical and _is_numeric(train, name)]
    categorical = [name for name in names if name not in numeric]
    standardise = config.preprocess != "none"
    return TablePreparation(_fit_numbers(train, numeric, standardise), _fit_categories(train, categorical))


def _is_numeric(train: Table, name: str) -> bool:
    cells, values = train.cells(name), train.floats(name)
    if values is not None:
        _check_not_empty(train, name, ~np.isnan(values))
        return True
    filled = [i for i, cell in enumerate(cells) if cell is not None]
    numbers = [i for i in filled if is_number(cells[i])]
    if numbers:
        word = next(i for i in filled if not is_number(cells[i]))
        raise UserError(
            f"{train.place(word, name)}: {shorten(cells[word])} is not a number, but {train.row(numbers[0])} "
            f"holds {shorten(cells[numbers[0]])}; correct it, or list the column in data.categorical"
        )
    return False


def _check_not_empty(train: Table, name: str, present: np.ndarray) -> None:
    if not present.any():
        raise UserError(f"{train.path}: column {name!r} has no values in the training rows; list it in data.ignore")


def _fit_numbers(train: Table, names: list[str], standardise: bool) -> tuple[NumberColumn, ...]:
    if not names:
        return ()
    from sklearn.impute import SimpleImputer  # type: ignore[import-untyped]
    from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]

    imputer, scaler = SimpleImputer(strategy="median"), StandardScaler(with_mean=standardise, with_std=standardise)
    scaler.fit(imputer.fit_transform(np.stack([train.numbers(name) for name in names], axis=1)))
    means = scaler.mean_ if standardise else np.zeros(len(names))
    deviations = scaler.scale_ if standardise else np.ones(len(names))
    fitted = zip(names, imputer.statistics_, means, deviations, strict=True)
    return tuple(NumberColumn(name, *map(float, values)) for name, *values in fitted)


def _fit_categories(train: Table, names: list[str]) -> tuple[CategoryColumn, ...]:
    if not names:
        return ()
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder

    cells = np.stack([train.text(name) for name in names], axis=1)
    for name, column in zip(names, cells.T, strict=True):
        _check_not_empty(train, name, column != None)  # noqa: E711 - elementwise
    imputer, encoder = SimpleImputer(strategy="most_frequent", missing_values=None), OneHotEncoder()
    encoder.fit(imputer.fit_transform(cells))
    for name, values in zip(names, encoder.categories_, strict=True):
        if len(values) > _MAX_CATEGORIES:
            raise UserError(
                f"{train.path}: column {name!r} has {len(values)} different values, too many for categories; "
                "list it in data.ignore if it is free text or an identifier"
            )
    fitted = zip(names, imputer.statistics_, encoder.categories_, strict=True)
    return tuple(CategoryColumn(name, str(fill), tuple(map(str, values))) for name, fill, values in fitted)
