"""What a split is called in files, folders and arrays."""

from collections.abc import Iterable

from verydeep.errors import UserError

NAMES = {"train": "train", "valid": "valid", "val": "valid", "validation": "valid", "test": "test"}


def by_role(names: Iterable[str], where: object) -> dict[str, str]:
    """Which of the names is the training, validation and test split; two of one role are refused."""
    found: dict[str, str] = {}
    for name in names:
        role = NAMES.get(name.lower())
        if role in found:
            raise UserError(f"{where}: has {found[role]} and {name} for one split; keep one of them")
        if role is not None:
            found[role] = name
    return found
