"""From labels, text or whole numbers, to class numbers that mean the same in every split."""

import numpy as np
import torch
from torch import Tensor

from verydeep.data.own._raw_split import RawSplit
from verydeep.errors import UserError


def class_names(train: RawSplit, source: str) -> tuple[str, ...]:
    """The distinct labels as text, in numerical order if all are whole numbers, else in alphabetical order."""
    names = [str(label) for label in np.unique(train.labels)]
    if len(names) < 2:
        raise UserError(f"{source}: only one class, {names[0]!r}; a classifier needs at least two")
    if train.classes is not None:
        return train.classes
    try:
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    except ValueError:
        return tuple(sorted(names))


def class_numbers(split: RawSplit, classes: tuple[str, ...]) -> Tensor:
    """The index of each label in `classes`, int64; the error for an unknown label names its place."""
    number = {name: i for i, name in enumerate(classes)}
    values, index = np.unique(split.labels, return_inverse=True)
    for value in values:
        if str(value) not in number:
            first = int(np.flatnonzero(split.labels == value)[0])
            raise UserError(f"{split.where(first)}: class {str(value)!r} does not occur in the training data")
    return torch.from_numpy(np.array([number[str(value)] for value in values], dtype=np.int64)[index])
