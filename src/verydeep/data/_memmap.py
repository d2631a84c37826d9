"""Data larger than memory: a folder of `.npy` pairs, `train_x.npy` and `train_y.npy`, the same for test and valid.

The samples stay on disk and are read batch by batch, so the splits must be files of their own, and their values are
prepared by `Batches`.
"""

from pathlib import Path
from typing import Literal

import numpy as np
import torch

from verydeep.data._arrays import image_axes
from verydeep.data._labels import Labelled, checked_labels
from verydeep.data._messages import shortened
from verydeep.data._roles import NAMES, by_role
from verydeep.errors import UserError

_DTYPES = ("uint8", "int16", "int32", "int64", "float16", "float32", "float64")


def read_memmap(folder: Path) -> dict[str, Labelled]:
    """The splits of which the folder has files."""
    roles = by_role((name for name in NAMES if (folder / f"{name}_x.npy").exists()), folder)
    if not {"train", "test"} <= set(roles):
        raise UserError(f"{folder}: needs train_x.npy, train_y.npy, test_x.npy and test_y.npy, which stay on disk")
    return {role: _pair(folder, name) for role, name in roles.items()}


def _pair(folder: Path, name: str) -> Labelled:
    samples, labels = folder / f"{name}_x.npy", folder / f"{name}_y.npy"
    # Copy on write: torch wants memory it may write to, and the file must not change.
    x = image_axes(_load(samples, "c"), str(samples))
    if x.dtype.name not in _DTYPES or not x.dtype.isnative:
        raise UserError(f"{samples}: {x.dtype} cannot be used from disk; save one of {', '.join(_DTYPES)}")
    y = checked_labels(_load(labels, None), len(x), str(labels))
    return Labelled(torch.from_numpy(x), y, lambda i: f"{labels}[{i}]")


def _load(path: Path, mode: Literal["c"] | None) -> np.ndarray:
    try:
        array = np.load(path, mmap_mode=mode, allow_pickle=False)
    except Exception as error:  # whatever numpy makes of a broken file
        raise UserError(f"{path}: cannot be read as .npy: {shortened(error)}") from None
    if not isinstance(array, np.ndarray):
        raise UserError(f"{path}: is not a .npy file")
    return array
