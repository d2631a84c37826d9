"""One split as it was read, and the names by which splits are recognised in files, folders and arrays."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from verydeep.data.own._table import Table
from verydeep.errors import UserError

SPLIT_NAMES = {"train": "train", "valid": "valid", "val": "valid", "validation": "valid", "test": "test"}


@dataclass(frozen=True)
class RawSplit:
    """One split as it was read.

    Attributes:
        x: Its samples, a tensor or a table.
        targets: What is to be predicted for each sample, by the name of the column: numbers, or text with None for
            missing cells.
        where: Gives the place of a target, from its row and column, for error messages.
        classes: The names of the classes in their order, if the file holds them.
    """

    x: Tensor | Table
    targets: dict[str, np.ndarray]
    where: Callable[[int, str], str]
    classes: tuple[str, ...] | None = None


def match_split_names(names: Iterable[str], where: object) -> dict[str, str]:
    """Find the names of the `train`, `valid` and `test` split among `names`; two names for one split are an error."""
    found: dict[str, str] = {}
    for name in names:
        split = SPLIT_NAMES.get(name.lower())
        if split in found:
            raise UserError(f"{where}: both {found[split]} and {name} name the same split; keep one of them")
        if split is not None:
            found[split] = name
    return found
