"""Other data for a trained network: prepared as its training data was, classes matched by name."""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from verydeep.data._arrays import ArrayPreparation
from verydeep.data._config import DataConfig
from verydeep.data._dataset import Split
from verydeep.data._inputs import Inputs
from verydeep.data._labels import Labelled, class_numbers
from verydeep.data._own import is_memory_mapped, read_own
from verydeep.data._table import Table
from verydeep.errors import UserError


def load_split(inputs: Inputs, trained: DataConfig, source: str, role: str, root: str | Path | None = None) -> Split:
    """One split of other data, ready for the network; data that is not split is taken whole.

    Args:
        inputs: What the network expects.
        trained: How its training data was read: target, delimiter and size of images are taken from there.
        source: A known name, or the path of a file or folder.
        role: `train`, `valid` or `test`.
        root: Where known sets are kept.
    """
    from verydeep.data._catalogue import NAMES

    if source in NAMES:
        return _known(inputs, source, role, root)
    parts = read_own(_like(trained, inputs, source))
    if len(parts) == 1:
        return replace(_own(inputs, next(iter(parts.values())), source), whole=True)
    if role not in parts:
        raise UserError(f"{source}: has no {role} split, only {', '.join(parts)}")
    return _own(inputs, parts[role], source)


def _known(inputs: Inputs, name: str, role: str, root: str | Path | None) -> Split:
    from verydeep.data._fetch import load_raw

    raw = load_raw(name, root)
    part = {"train": raw.train, "test": raw.test}.get(role)
    if part is None:
        raise UserError(f"{name}: has no {role} split of its own; choose train or test")
    missing = [label for label in raw.classes if label not in inputs.classes]
    if missing:
        raise UserError(f"{name}: class '{missing[0]}' is not one of the network's: {', '.join(inputs.classes[:10])}")
    numbers = torch.tensor([inputs.classes.index(label) for label in raw.classes])
    return Split(_preparation(inputs, part.x, name).whole(part.x, name), numbers[part.y])


def _own(inputs: Inputs, part: Labelled, source: str) -> Split:
    if isinstance(part.x, Table):
        if isinstance(inputs.preparation, ArrayPreparation):
            raise UserError(f"{source}: is a table; the network was trained on samples {inputs.preparation.shape}")
        return Split(inputs.preparation(part.x), class_numbers(part, inputs.classes))
    prepare, y = _preparation(inputs, part.x, source), class_numbers(part, inputs.classes)
    if is_memory_mapped(Path(source)):
        return Split(part.x, y, prepare)
    return Split(prepare.whole(part.x, source), y)


def _preparation(inputs: Inputs, x: Tensor, source: str) -> ArrayPreparation:
    """The network's, after a look at whether it is for such samples."""
    if not isinstance(inputs.preparation, ArrayPreparation):
        names = [column.name for column in inputs.preparation.numbers]
        names += [column.name for column in inputs.preparation.categories]
        raise UserError(f"{source}: is no table; the network was trained on one with {', '.join(names[:10])}")
    inputs.preparation.check_shape(x, source)
    return inputs.preparation


def _like(trained: DataConfig, inputs: Inputs, source: str) -> DataConfig:
    """Read as the training data was; its splits and other columns, with a name or without, are no concern here."""
    preparation = inputs.preparation
    first = preparation.shape[0] if isinstance(preparation, ArrayPreparation) else None
    return replace(
        trained,
        source=source,
        test=None,
        validation=None,
        test_path=None,
        valid_path=None,
        channels=1 if first == 1 else 3 if first == 3 else None,
        categorical=(),
        ignore=("",),
    )
