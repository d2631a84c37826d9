"""New samples for a trained network, read in parts, so that any number of them needs little memory."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from verydeep.data.own._array_files import as_samples, read_npz_samples
from verydeep.data.own._image_files import Decoder
from verydeep.data.own._image_folder import SUFFIXES as IMAGE_SUFFIXES, read_image_as
from verydeep.data.own._in_memory import in_memory, table_of
from verydeep.data.own._progress import report_fraction
from verydeep.data.own._table import Column, Table
from verydeep.data.own._table_files import SUFFIXES as TABLE_SUFFIXES, iterate_tables
from verydeep.data.own._table_options import TableOptions
from verydeep.data.own._text_column import TextColumn
from verydeep.data.prepare._columns import TablePreparation
from verydeep.data.prepare._preprocess import ArrayPreparation
from verydeep.errors import UserError, list_names

_ROWS = 20_000  # of a part of a table
_IMAGES, _VALUES = 1000, 2**22  # of a part of a folder of images; of a part of an array

Preparation = ArrayPreparation | TablePreparation
Rows = Any
"""New samples: a path (a table, an `.npz` file with `x`, an image, a folder of images), a list of paths of images, a
stream of bytes with CSV, a DataFrame of pandas or polars, a list of dictionaries, or an array."""


@dataclass(frozen=True)
class NewSamples:
    """A part of new data.

    Attributes:
        raw: The samples as they were read.
        x: The samples as the network expects them.
        files: The names of images; empty for other data.
    """

    raw: Tensor | Table
    x: Tensor
    files: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.x)


def iterate_new(rows: Rows, preparation: Preparation | None, options: TableOptions) -> Iterator[NewSamples]:
    """Read and prepare new samples in parts; at least one, maybe without samples.

    Args:
        rows: The samples.
        preparation: How they are prepared; None if they are arrays that are ready for the network.
        options: How a table is to be read; categories are kept as they are written.
    """
    if preparation is None:
        if _is_path(rows) or _are_paths(rows) or _is_table(rows):
            raise UserError(
                "the network was trained on tensors given in Python, so it is not known how to prepare files and "
                "tables; give an array that is prepared as the training data was"
            )
        return (NewSamples(part, part.float()) for part in _parts(_samples(rows)))
    if isinstance(preparation, TablePreparation):
        tables = _tables(rows, preparation, options)
        return (NewSamples(table, preparation(table)) for table in tables)
    if _is_path(rows) or _are_paths(rows):
        paths = [Path(rows)] if _is_path(rows) else [Path(path) for path in rows]
        if len(paths) == 1 and paths[0].suffix.lower() == ".npz":
            return _prepared(read_npz_samples(_existing(paths[0])), preparation, str(paths[0]))
        return _images(paths, preparation)
    return _prepared(_samples(rows), preparation, "rows")


def _is_path(rows: Rows) -> bool:
    return isinstance(rows, str | os.PathLike)


def _are_paths(rows: Rows) -> bool:
    return isinstance(rows, list | tuple) and len(rows) > 0 and all(_is_path(row) for row in rows)


def _is_table(rows: Rows) -> bool:
    memory = in_memory(rows)
    return isinstance(rows, Table) or _are_dictionaries(rows) or (memory is not None and memory.kind == "table")


def _are_dictionaries(rows: Rows) -> bool:
    return isinstance(rows, list | tuple) and len(rows) > 0 and all(isinstance(row, Mapping) for row in rows)


def _existing(path: Path) -> Path:
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    return path


def _tables(rows: Rows, preparation: TablePreparation, options: TableOptions) -> Iterator[Table]:
    if hasattr(rows, "read") or _is_path(rows):
        source = rows if hasattr(rows, "read") else _table_file(Path(rows), preparation)
        return iterate_tables(source, options, _ROWS)
    if _are_dictionaries(rows):
        return iter([_table_of_dictionaries(rows)])
    if _is_table(rows):
        return iter([rows if isinstance(rows, Table) else table_of(rows)])
    if _are_paths(rows):
        raise UserError(f"expected one table with the columns {list_names(preparation.names)}, got {len(rows)} paths")
    return iter([_table_of_array(rows, preparation)])


def _table_file(path: Path, preparation: TablePreparation) -> Path:
    if _existing(path).is_dir() or path.suffix.lower() in (".npz", ".npy", *IMAGE_SUFFIXES):
        names = list_names(preparation.names)
        raise UserError(f"{path}: is not a table; the network was trained on a table with the columns {names}")
    return path


def _table_of_dictionaries(rows: Sequence[Mapping[str, Any]]) -> Table:
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {str(name): _column([row.get(name) for row in rows]) for name in names}
    return Table("rows", dict(columns), np.arange(len(rows)))


def _column(cells: list[Any]) -> Column:
    if not any(isinstance(cell, str) for cell in cells):
        try:
            return np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
        except (TypeError, ValueError):
            pass
    return TextColumn.of([None if cell is None else str(cell) for cell in cells])


def _table_of_array(rows: Rows, preparation: TablePreparation) -> Table:
    """The columns of a matrix of numbers, in the order of the training data; there must be no other columns."""
    names = list_names(preparation.names)
    if len(preparation.numbers) < len(preparation.columns):
        raise UserError(f"the columns {names} are not all numbers; give a DataFrame, a list of dictionaries or a file")
    array = np.asarray(_as_array(rows), dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != len(preparation.columns):
        raise UserError(
            f"rows: expected an array of shape (rows, {len(preparation.columns)}), got {array.shape}: {names}"
        )
    columns = dict(zip(preparation.names, array.T, strict=True))
    return Table("rows", dict(columns), np.arange(len(array)))


def _samples(rows: Rows) -> Tensor:
    return as_samples(_as_array(rows), "rows")


def _as_array(rows: Rows) -> np.ndarray:
    if hasattr(rows, "read"):
        raise UserError("standard input must be a table, but the network was not trained on one; give a file or folder")
    try:
        array = np.asarray(rows.detach().cpu() if hasattr(rows, "detach") else rows)
    except ValueError as error:  # nested lists of different lengths
        raise UserError(f"rows: expected an array: {error}") from None
    if array.dtype.kind not in "buif":
        raise UserError(f"rows: expected numbers, got {array.dtype}; give an array, a DataFrame or a path")
    return array


def _prepared(samples: Tensor, preparation: ArrayPreparation, what: str) -> Iterator[NewSamples]:
    preparation.check_shape(samples, what)
    for part in _parts(samples):
        yield NewSamples(part, preparation.whole(part, what))


def _parts(samples: Tensor) -> Iterator[Tensor]:
    return iter(samples.split(max(1, _VALUES // max(1, prod(samples.shape[1:])))))


def _images(paths: Sequence[Path], preparation: ArrayPreparation) -> Iterator[NewSamples]:
    """Images of any size and number of channels, resized and converted to those of the training images."""
    for path in paths:
        if _existing(path).suffix.lower() in TABLE_SUFFIXES:
            raise UserError(f"{path}: is a table, but the network was trained on samples of shape {preparation.shape}")
    if len(preparation.shape) != 3:
        raise UserError(f"{paths[0]}: the network was trained on {preparation.shape} numbers, not on images")
    channels, height, width = preparation.shape
    files, names = zip(*(named for path in paths for named in _image_files(path)), strict=True)
    read = partial(read_image_as, size=(height, width), channels=channels)
    decoder = Decoder(files, (channels, height, width), read, keep=0)
    size = min(_IMAGES, max(1, _VALUES // prod(preparation.shape)))
    for start in range(0, len(files), size):
        raw = decoder(np.arange(start, min(start + size, len(files))))
        yield NewSamples(raw, preparation.whole(raw, str(paths[0])), names[start : start + size])
        report_fraction(paths[0].name, min(1.0, (start + size) / len(files)))


def _image_files(path: Path) -> list[tuple[Path, str]]:
    """An image, or all images in a folder and the folders in it, with their names there."""
    if not path.is_dir():
        return [(path, str(path))]
    inside = sorted(file for file in path.rglob("*") if file.suffix.lower() in IMAGE_SUFFIXES)
    files = [file for file in inside if not any(part.startswith(".") for part in file.relative_to(path).parts)]
    if not files:
        raise UserError(f"{path}: no images ({', '.join(IMAGE_SUFFIXES)})")
    return [(file, str(file.relative_to(path))) for file in files]
