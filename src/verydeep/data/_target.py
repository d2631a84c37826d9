"""The column of a table that holds the classes."""

from collections.abc import Collection
from pathlib import Path

import numpy as np

from verydeep.data._config import DataConfig
from verydeep.data._labels import Labelled
from verydeep.data._messages import listed
from verydeep.data._table import Table
from verydeep.data._table_files import read_table
from verydeep.errors import UserError

_USUAL = ("target", "label", "class", "y")


def read_labelled_table(path: Path, config: DataConfig) -> Labelled:
    """A table without its target and the columns to ignore, and the target's cells as labels."""
    table = read_table(path, config.delimiter)
    target = _target(table, config.target)
    for name in (*config.ignore, *config.categorical):
        if name:  # without a name: saved row numbers, which one file has and the next one not
            table.check_has(name)
    labels = _labels(table, target)
    left = {name: cells for name, cells in table.columns.items() if name not in (target, *config.ignore)}
    _check_left(path, left)
    return Labelled(Table(path, left, table.rows), labels, lambda i: table.place(i, target))


def _target(table: Table, wanted: str | None) -> str:
    if wanted is not None:
        table.check_has(wanted)
        return wanted
    found = [name for name in table.columns if name.lower() in _USUAL]
    if len(found) != 1:
        raise UserError(f"{table.path}: say which column holds the classes, target=...; it has {listed(table.columns)}")
    return found[0]


def _labels(table: Table, target: str) -> np.ndarray:
    labels = table.text(target)
    for i, label in enumerate(labels):
        if label is None:
            raise UserError(f"{table.place(i, target)}: the class is missing; fill it in, or remove the row")
    values = table.floats(target)
    if values is not None and (values != np.floor(values)).any():
        raise UserError(f"{table.path}: column {target!r} holds fractions, not classes; only classes can be learnt")
    return labels


def _check_left(path: Path, columns: Collection[str]) -> None:
    if not columns:
        raise UserError(f"{path}: no columns left to learn from beside the target")
    if "" in columns:
        raise UserError(f"{path}: a column has no name (a saved row number?); name it, or set ignore to ['']")
