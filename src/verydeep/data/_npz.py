"""NumPy's archives: `x` and `y`, or `x_train`, `y_train`, `x_test`, ...; perhaps `classes`, the names."""

import zipfile
from pathlib import Path

import numpy as np
from torch import Tensor

from verydeep.data._arrays import as_samples
from verydeep.data._labels import Labelled, checked_labels, named_labels
from verydeep.data._messages import listed, shortened
from verydeep.data._roles import by_role
from verydeep.errors import UserError


def read_npz(path: Path) -> dict[str, Labelled]:
    """Its splits; a file with just `x` and `y` is all `train`."""
    arrays = _read(path)
    if "x" in arrays or "y" in arrays:
        return {"train": _part(path, arrays, "")}
    splits = by_role(dict.fromkeys(name[2:] for name in arrays if name.startswith(("x_", "y_"))), path)
    if "train" not in splits:
        raise UserError(f"{path}: expected the arrays x and y, or x_train, y_train, ...; it has {listed(arrays)}")
    return {role: _part(path, arrays, f"_{name}") for role, name in splits.items()}


def read_samples(path: Path) -> Tensor:
    """Only `x`, for samples whose classes are not known."""
    return as_samples(_array(path, _read(path), "x"), f"{path}: x")


def _part(path: Path, arrays: dict[str, np.ndarray], key: str) -> Labelled:
    x = as_samples(_array(path, arrays, "x" + key), f"{path}: x{key}")
    where = f"{path}: y{key}"
    y = checked_labels(_array(path, arrays, "y" + key), len(x), where)
    classes = None
    if "classes" in arrays:
        y = named_labels(y, arrays["classes"], where)
        classes = tuple(str(name) for name in arrays["classes"])
    return Labelled(x, y, lambda i: f"{where}[{i}]", classes)


def _array(path: Path, arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    if name not in arrays:
        raise UserError(f"{path}: no array {name!r}; it has {listed(arrays)}")
    return arrays[name]


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        if not zipfile.is_zipfile(path):  # numpy would take it for a pickle, and say so
            raise ValueError("it is not an archive")
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: np.asarray(archive[name]) for name in archive.files}
    except Exception as error:  # whatever zipfile, zlib and numpy make of a broken file: they have many ways to say so
        if "allow_pickle" in str(error):
            raise UserError(f"{path}: holds Python objects, which are not loaded; save numbers and text only") from None
        raise UserError(f"{path}: cannot be read as .npz: {shortened(error)}") from None
