"""Predictions as CSV, JSON Lines, Parquet or `.npz`, written part by part."""

from __future__ import annotations

import csv
import json
import sys
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from verydeep.errors import UserError, install_command
from verydeep.files import write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from verydeep.data import Task
    from verydeep.training import Predictions

_SUFFIXES = (".csv", ".parquet", ".npz", ".jsonl")


@dataclass(frozen=True)
class Part:
    """Predictions for some rows.

    Attributes:
        kept: Columns of the input, as text.
        predictions: What was predicted.
        task: What the predictions are.
    """

    kept: Mapping[str, np.ndarray]
    predictions: Predictions
    task: Task

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """The columns of the output: those of the input, then predictions, then probabilities."""
        predictions, names = self.predictions, self.task.names
        if self.task.kind == "classification":
            target = self.task.target[0] if self.task.target else "class"
            answers = {f"predicted_{target}": predictions.answers}
        else:
            answers = {f"predicted_{name}": predictions.answers[:, i] for i, name in enumerate(names)}
        if predictions.probabilities is not None:
            answers |= {f"probability_{name}": predictions.probabilities[:, i] for i, name in enumerate(names)}
        for name in self.kept:
            if name in answers:
                raise UserError(f"--keep: the column {name!r} has the name of a prediction; rename it in the table")
        return {**self.kept, **answers}


def check_suffix(path: Path) -> None:
    """Raise unless predictions can be written to such a file."""
    if path.suffix.lower() not in _SUFFIXES:
        raise UserError(f"-o {path}: expected a name ending in {', '.join(_SUFFIXES)}")
    if path.suffix.lower() == ".parquet":
        _pyarrow(path)


def print_parts(parts: Iterable[Part], as_json: bool) -> None:
    """Print CSV, or one JSON object per row."""
    (_write_json if as_json else _write_csv)(sys.stdout, parts)


def write_parts(path: Path, parts: Iterable[Part]) -> None:
    """Write a file in the format that its suffix names; it appears once it is complete."""

    def write(partial: Path) -> None:
        if path.suffix.lower() == ".npz":
            _write_npz(partial, parts)
        elif path.suffix.lower() == ".parquet":
            _write_parquet(partial, parts)
        else:
            with partial.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
                (_write_csv if path.suffix.lower() == ".csv" else _write_json)(file, parts)

    write_atomic(path, write)


def _write_csv(file: TextIO, parts: Iterable[Part]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    for number, part in enumerate(parts):
        columns = part.columns
        if number == 0:
            writer.writerow(columns)
        writer.writerows(zip(*(_written(values) for values in columns.values()), strict=True))
        file.flush()


def _written(values: np.ndarray) -> list[str]:
    """Numbers in the fewest digits that give the same number again."""
    return list(values if values.dtype.kind in "OU" else values.astype("U"))


def _write_json(file: TextIO, parts: Iterable[Part]) -> None:
    for part in parts:
        columns = part.columns
        # of float32, the fewest digits, not those of the nearest float64
        cells = [[float(v) for v in _written(a)] if a.dtype == np.float32 else a.tolist() for a in columns.values()]
        for row in zip(*cells, strict=True):
            file.write(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n")
        file.flush()


def _write_parquet(path: Path, parts: Iterable[Part]) -> None:
    pyarrow, writer = _pyarrow(path), None
    try:
        for part in parts:
            columns = part.columns
            table = pyarrow.table(
                {name: pyarrow.array(values.tolist(), _type_of(pyarrow, values)) for name, values in columns.items()}
            )
            writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _type_of(pyarrow: Any, values: np.ndarray) -> Any:  # noqa: ANN401 - pyarrow has no types
    return pyarrow.string() if values.dtype.kind in "OU" else pyarrow.from_numpy_dtype(values.dtype)


def _pyarrow(path: Path) -> Any:  # noqa: ANN401
    try:
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise UserError(f"{path}: writing Parquet needs pyarrow: {install_command('parquet')}") from None
    return pyarrow


def _write_npz(path: Path, parts: Iterable[Part]) -> None:
    """`predicted`, `probabilities` if there are any, `names` of their columns, and the columns that are kept."""
    listed = list(parts)
    arrays = {name: np.concatenate([part.kept[name] for part in listed]).astype(str) for name in listed[0].kept}
    results = {"names": np.array(listed[0].task.names)}
    results["predicted"] = np.concatenate([part.predictions.answers for part in listed])
    probabilities = [part.predictions.probabilities for part in listed]
    if probabilities[0] is not None:
        results["probabilities"] = np.concatenate([p for p in probabilities if p is not None])
    for name in arrays:
        if name in results:
            raise UserError(f"--keep: the column {name!r} has the name of a prediction; rename it in the table")
    with zipfile.ZipFile(path, "w") as archive:  # np.savez takes no array called file
        for name, array in {**arrays, **results}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
