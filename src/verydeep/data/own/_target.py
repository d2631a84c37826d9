"""The columns of a table that hold what is to be predicted."""

from collections.abc import Collection
from pathlib import Path

from verydeep.data._config import DataConfig
from verydeep.data.own._raw_split import RawSplit
from verydeep.data.own._table import Table
from verydeep.data.own._table_options import USUAL_TARGETS
from verydeep.errors import UserError, list_names


def split_off_target(table: Table, config: DataConfig) -> RawSplit:
    """Use the target columns as targets, and the other columns, except the ignored ones, as samples."""
    targets = find_targets(table, config.target)
    for setting in ("ignore", "categorical", "numeric"):
        for name in getattr(config, setting):
            if name:  # a column without a name holds saved row numbers, which not every file has
                table.check_has(name, f"data.{setting}")
    features = {name: cells for name, cells in table.columns.items() if name not in (*targets, *config.ignore)}
    _check_features(table.path, features)
    cells = {name: table.text(name) for name in targets}
    return RawSplit(Table(table.path, features, table.rows), cells, table.place)


def find_targets(table: Table, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the target columns: those that were given, or the only one with a usual name."""
    if wanted and ",".join(wanted) in table.columns:  # a single name with commas
        return (",".join(wanted),)
    for name in wanted:
        table.check_has(name, "data.target")
    if wanted:
        return tuple(dict.fromkeys(wanted))
    found = [name for name in table.columns if name.lower() in USUAL_TARGETS]
    if len(found) != 1:
        raise UserError(
            f"{table.path}: which column is to be predicted? Set data.target to one of {list_names(table.columns)}"
        )
    return (found[0],)


def _check_features(path: Path | str, columns: Collection[str]) -> None:
    if not columns:
        raise UserError(f"{path}: no columns left to learn from besides the target")
    if "" in columns:
        raise UserError(f"{path}: a column has no name (saved row numbers?); name it, or set data.ignore to ['']")
