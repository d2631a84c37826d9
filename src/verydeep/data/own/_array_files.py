"""Array files: `.npz` archives, and folders of memory-mapped `.npy` files for data larger than memory.

An archive holds `x` and `y`, or `x_train`, `y_train`, `x_test` and so on, and perhaps `classes`, the names. A folder
holds `train_x.npy` and `train_y.npy`, and the same for `test` and perhaps `valid`. The samples of a folder stay on disk
and are read batch by batch; therefore each split needs its own files, and `Batches` prepares the values.
"""

from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from verydeep.data.own._raw_split import SPLIT_NAMES, RawSplit, match_split_names
from verydeep.errors import UserError, list_names, shorten
from verydeep.files import require_regular
from verydeep.npz import read_npz as read_npz_arrays

_MAPPABLE = ("uint8", "int16", "int32", "int64", "float16", "float32", "float64")


def read_npz(path: Path) -> dict[str, RawSplit]:
    """Read the splits of an archive; one with just `x` and `y` is all `train`."""
    arrays = read_npz_arrays(path)
    if "x" in arrays or "y" in arrays:
        return {"train": _npz_split(path, arrays, "")}
    splits = match_split_names(dict.fromkeys(name[2:] for name in arrays if name.startswith(("x_", "y_"))), path)
    if "train" not in splits:
        raise UserError(f"{path}: expected the arrays x and y, or x_train, y_train, ...; it has {list_names(arrays)}")
    return {split: _npz_split(path, arrays, f"_{name}") for split, name in splits.items()}


def read_npz_samples(path: Path) -> Tensor:
    """Read only `x`, for samples whose classes are not known."""
    return as_samples(_array(path, read_npz_arrays(path), "x"), f"{path}: x")


def is_memory_mapped(path: Path) -> bool:
    """Whether the path is a folder whose samples stay on disk."""
    return (path / "train_x.npy").exists()


def read_memory_mapped(folder: Path) -> dict[str, RawSplit]:
    """Open the splits of a folder without reading their samples."""
    splits = match_split_names((name for name in SPLIT_NAMES if (folder / f"{name}_x.npy").exists()), folder)
    if not {"train", "test"} <= set(splits):
        raise UserError(f"{folder}: needs train_x.npy, train_y.npy, test_x.npy and test_y.npy, which stay on disk")
    return {split: _mapped_split(folder, name) for split, name in splits.items()}


def _npz_split(path: Path, arrays: dict[str, np.ndarray], suffix: str) -> RawSplit:
    x = as_samples(_array(path, arrays, "x" + suffix), f"{path}: x{suffix}")
    where = f"{path}: y{suffix}"
    y = check_targets(_array(path, arrays, "y" + suffix), len(x), where)
    if "classes" in arrays:
        classes = tuple(str(name) for name in arrays["classes"])
        return as_raw_split(x, _label_names(y, arrays["classes"], where), where, classes)
    return as_raw_split(x, y, where)


def _array(path: Path, arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    if name not in arrays:
        raise UserError(f"{path}: no array {name!r}; it has {list_names(arrays)}")
    return arrays[name]


def _mapped_split(folder: Path, name: str) -> RawSplit:
    samples, labels = folder / f"{name}_x.npy", folder / f"{name}_y.npy"
    # Copy-on-write: torch requires writable memory, and the file must not change.
    x = _image_axes(_load_npy(samples, "c"), str(samples))
    if x.dtype.name not in _MAPPABLE or not x.dtype.isnative:
        raise UserError(f"{samples}: {x.dtype} cannot be used from disk; save one of {', '.join(_MAPPABLE)}")
    y = check_targets(_load_npy(labels, None), len(x), str(labels))
    return as_raw_split(torch.from_numpy(x), y, str(labels))


def _load_npy(path: Path, mode: Literal["c"] | None) -> np.ndarray:
    try:
        array = np.load(require_regular(path), mmap_mode=mode, allow_pickle=False)
    except UserError:
        raise
    except Exception as error:  # a broken file makes numpy raise many kinds of exceptions
        raise UserError(f"{path}: cannot be read as .npy: {shorten(error)}") from None
    if not isinstance(array, np.ndarray):
        raise UserError(f"{path}: is not a .npy file")
    return array


def as_samples(array: np.ndarray, where: str) -> Tensor:
    """Convert an array to samples: uint8 stays, small types become float32, others float64, all finite in float32."""
    if array.dtype.kind not in "buif":
        raise UserError(f"{where}: expected numbers, got {array.dtype}; save them as float32 or uint8")
    array = _image_axes(array, where)
    if array.dtype != np.uint8:
        array = array.astype(np.float64 if array.dtype.itemsize > 2 and array.dtype != np.float32 else np.float32)
        _check_finite(array, where)
    return torch.from_numpy(np.require(array, requirements=("C", "W")))


def _image_axes(array: np.ndarray, where: str) -> np.ndarray:
    """Keep `(n, features)`, give `(n, h, w)` one channel, and turn `(n, h, w, 1 or 3)` into `(n, c, h, w)`."""
    if not 2 <= array.ndim <= 4 or array.size == 0:
        raise UserError(
            f"{where}: shape {array.shape} cannot be used; "
            "expected (samples, features), (samples, height, width) or (samples, channels, height, width)"
        )
    if array.ndim == 3:
        return array[:, None]
    if array.ndim == 4 and array.shape[3] in (1, 3) and array.shape[1] not in (1, 3):
        return np.moveaxis(array, 3, 1)
    if array.ndim == 4 and array.shape[3] == 4 and array.shape[2] > 4 and array.shape[1] not in (1, 3, 4):
        raise UserError(
            f"{where}: shape {array.shape} looks like colour images with transparency as a fourth channel; "
            "blend them with white and save three channels, or save (samples, channels, height, width)"
        )
    return array


def _check_finite(array: np.ndarray, where: str) -> None:
    good = np.abs(array) <= np.finfo(np.float32).max
    if not good.all():
        first = tuple(int(i) for i in np.argwhere(~good)[0])
        raise UserError(f"{where}{list(first)}: {array[first]} is not a finite float32 number; correct or remove it")


def check_targets(y: np.ndarray, count: int, where: str) -> np.ndarray:
    """Raise unless there are a number or a text, or several numbers, per sample."""
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if not (y.ndim == 1 and y.dtype.kind in "buifU") and not (y.ndim == 2 and y.shape[1] and y.dtype.kind in "buif"):
        raise UserError(
            f"{where}: expected a number or text, or a row of numbers, per sample; got {y.dtype} of shape {y.shape}"
        )
    if len(y) != count:
        raise UserError(f"{where}: {len(y)} targets for {count} samples; there must be one per sample")
    return y


def as_raw_split(x: Tensor, y: np.ndarray, where: str, classes: tuple[str, ...] | None = None) -> RawSplit:
    """Samples with their targets; the columns of a matrix of targets are called y0, y1 and so on."""
    if y.ndim == 1:
        return RawSplit(x, {"y": y}, lambda i, _name: f"{where}[{i}]", classes)
    targets = {f"y{number}": column for number, column in enumerate(y.T)}
    return RawSplit(x, targets, lambda i, name: f"{where}[{i}, {name[1:]}]", classes)


def _label_names(y: np.ndarray, names: np.ndarray, where: str) -> np.ndarray:
    """Replace whole-number labels by their names; text is already a name."""
    if names.ndim != 1 or names.dtype.kind not in "iuU" or len(np.unique(names)) < len(names):
        raise UserError(f"{where}: 'classes' must be a list of different names, one per class")
    if y.dtype.kind == "U":
        return y
    if y.ndim != 1 or y.dtype.kind not in "bui":
        raise UserError(f"{where}: with 'classes', expected one whole number or text per sample, got {y.dtype}")
    outside = np.flatnonzero((y < 0) | (y >= len(names)))
    if len(outside):
        i = int(outside[0])
        raise UserError(f"{where}[{i}]: label {y[i]} is out of range; 'classes' has {len(names)} names")
    return names[y.astype(np.int64)]
