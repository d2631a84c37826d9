"""Labels, words or whole numbers, to class numbers that mean the same in every split."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from verydeep.data._table import Table
from verydeep.errors import UserError


@dataclass(frozen=True)
class Labelled:
    """One split as it was read.

    Attributes:
        x: Its samples, a tensor or a table.
        labels: The label of each sample.
        where: The place of label i, for errors.
        classes: The names of the classes in their order, when the file says them.
    """

    x: Tensor | Table
    labels: np.ndarray
    where: Callable[[int], str]
    classes: tuple[str, ...] | None = None


def class_names(train: Labelled, source: str) -> tuple[str, ...]:
    """Every label once, as text; in the order of numbers when all are whole numbers, else of the alphabet."""
    names = [str(label) for label in np.unique(train.labels)]
    if len(names) < 2:
        raise UserError(f"{source}: only one class, {names[0]!r}; there is nothing to learn with fewer than two")
    if train.classes is not None:
        return train.classes
    try:
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    except ValueError:
        return tuple(sorted(names))


def class_numbers(part: Labelled, classes: tuple[str, ...]) -> Tensor:
    """The number of each label in `classes`, int64; a label that is not among them is refused by its place."""
    number = {name: i for i, name in enumerate(classes)}
    values, index = np.unique(part.labels, return_inverse=True)
    for value in values:
        if str(value) not in number:
            first = int(np.flatnonzero(part.labels == value)[0])
            raise UserError(f"{part.where(first)}: class {str(value)!r} does not occur in the training data")
    return torch.from_numpy(np.array([number[str(value)] for value in values], dtype=np.int64)[index])


def checked_labels(y: np.ndarray, count: int, where: str) -> np.ndarray:
    """The labels of an array file: one for each of `count` samples, whole numbers or text."""
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or y.dtype.kind not in "buiU":
        raise UserError(f"{where}: expected one whole number or text per sample, got {y.dtype} of shape {y.shape}")
    if len(y) != count:
        raise UserError(f"{where}: {len(y)} labels for {count} samples; there must be one for each")
    return y


def named_labels(y: np.ndarray, names: np.ndarray, where: str) -> np.ndarray:
    """Whole-number labels as the names they stand for; text is already a name."""
    if names.ndim != 1 or names.dtype.kind not in "iuU" or len(np.unique(names)) < len(names):
        raise UserError(f"{where}: 'classes' must be a list of different names, one per class")
    if y.dtype.kind == "U":
        return y
    outside = np.flatnonzero((y < 0) | (y >= len(names)))
    if len(outside):
        i = int(outside[0])
        raise UserError(f"{where}[{i}]: label {y[i]} is out of range; 'classes' has {len(names)} names")
    return names[y.astype(np.int64)]
