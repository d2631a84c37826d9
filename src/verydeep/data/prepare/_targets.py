"""From raw targets to tensors: which task they are, and class numbers or numbers that mean the same in every split."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from verydeep.data._config import DataConfig, TaskKind
from verydeep.data._task import Task
from verydeep.data.own._raw_split import RawSplit
from verydeep.data.own._table import Table
from verydeep.errors import UserError, list_names, shorten

MOST_CLASSES = 20  # whole numbers of more different values are a regression, unless they number classes in an array

_LARGEST_NUMBER_OF_CLASSES = 10_000  # a confusion matrix of more takes gigabytes


def recognise_task(train: RawSplit, config: DataConfig) -> Task:
    """What the targets ask for. The mean and deviation of a regression are those of `fit_task`, after the split."""
    _check_complete(train)
    kind = config.task or _kind_of(train, config)
    if kind == "classification":
        if len(train.targets) > 1:
            raise UserError(
                f"{config.source}: classification takes one target, but there are {len(train.targets)}: "
                f"{list_names(train.targets)}; give one, or set data.task to 'multilabel' or 'regression'"
            )
        return Task("classification", _class_names(train, config.source), target=_columns(train))
    names = tuple(train.targets)
    unknown = (0.0,) * len(names) if kind == "regression" else ()
    return Task(kind, names, mean=unknown, deviation=unknown, target=_columns(train))


def _columns(train: RawSplit) -> tuple[str, ...]:
    return tuple(train.targets) if isinstance(train.x, Table) else ()


def encode_targets(split: RawSplit, task: Task) -> Tensor:
    """Class numbers, int64, `(n,)`; or numbers in their original units or labels 0 and 1, float64, `(n, targets)`."""
    _check_complete(split)
    if task.kind == "classification":
        return _class_numbers(split, task.names)
    _check_columns(split, task.names)
    columns = [_numbers(split, name) for name in task.names]
    if task.kind == "multilabel":
        for name, column in zip(task.names, columns, strict=True):
            _require(split, name, (column == 0) | (column == 1), "is neither 0 nor 1, as a label must be")
    return torch.from_numpy(np.stack(columns, axis=1))


def fit_task(task: Task, train: Tensor, source: str) -> Task:
    """The task with the mean and deviation of the training targets, if it is a regression."""
    if task.kind != "regression":
        return task
    mean, deviation = train.mean(0), train.std(0, correction=0)
    for name, number, spread in zip(task.names, mean.tolist(), deviation.tolist(), strict=True):
        if not spread > 1e-12 * abs(number):
            raise UserError(f"{source}: the target {name!r} is {number:g} in all training rows; nothing can be learnt")
    return replace(task, mean=tuple(mean.tolist()), deviation=tuple(deviation.tolist()))


def ready_targets(task: Task, y: Tensor) -> Tensor:
    """Encoded targets as a network learns them: class numbers, standardised numbers, or labels."""
    return task.standardise(y) if task.kind == "regression" else y if task.kind == "classification" else y.float()


def why_task(task: Task, config: DataConfig, split_y: Tensor) -> str:
    """How the task was recognised, for people to check."""
    if config.task is not None:
        return "as given"
    if task.kind == "multilabel":
        return "several columns of zeros and ones"
    if task.kind == "regression":
        values = split_y.unique().numel()
        return "fractions" if (split_y % 1 != 0).any() else f"{values:,} different whole numbers"
    return ""


def _kind_of(train: RawSplit, config: DataConfig) -> TaskKind:
    numbers = {name: _as_numbers(values) for name, values in train.targets.items()}
    if len(numbers) > 1:
        words = [name for name, values in numbers.items() if values is None]
        if words:
            raise UserError(
                f"{config.source}: several targets must be numbers, but {list_names(words)} "
                f"{'holds' if len(words) == 1 else 'hold'} text; give a single target, or encode them as 0 and 1"
            )
        labels = all(np.isin(values, (0, 1)).all() for values in numbers.values() if values is not None)
        return "multilabel" if labels else "regression"
    (values,) = numbers.values()
    if values is None or train.classes is not None:
        return "classification"
    if not _is_whole(values).all():  # also if a number is infinite, for which `_numbers` has a message
        return "regression"
    different = np.unique(values)
    if len(different) <= MOST_CLASSES:
        return "classification"
    (raw,) = train.targets.values()
    are_numbers_of_classes = not isinstance(train.x, Table) and raw.dtype.kind in "iu" and different[0] in (0, 1)
    return "classification" if are_numbers_of_classes and np.ptp(different) == len(different) - 1 else "regression"


def _is_whole(values: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        whole: np.ndarray = values % 1 == 0
    return whole


def _as_numbers(values: np.ndarray) -> np.ndarray | None:
    """Targets as float64; None if they are text."""
    if values.dtype.kind in "buif":
        return values.astype(np.float64)
    distinct, index = _distinct(values)
    if any("_" in value for value in distinct.tolist()):
        return None
    try:
        return np.take(distinct.astype(np.float64), index)
    except ValueError:
        return None


def _numbers(split: RawSplit, name: str) -> np.ndarray:
    values = split.targets[name]
    numbers = _as_numbers(values)
    if numbers is None:
        bad = next(i for i, value in enumerate(values) if _as_numbers(np.array([value], dtype=object)) is None)
        raise UserError(f"{split.where(bad, name)}: the target {shorten(values[bad])} is not a number")
    _require(split, name, np.abs(numbers) <= np.finfo(np.float32).max, "is not a finite number")
    return numbers


def _require(split: RawSplit, name: str, holds: np.ndarray, otherwise: str) -> None:
    bad = np.flatnonzero(~holds)
    if len(bad):
        row = int(bad[0])
        raise UserError(f"{split.where(row, name)}: the target {str(split.targets[name][row])[:60]} {otherwise}")


def _check_columns(split: RawSplit, names: tuple[str, ...]) -> None:
    if len(split.targets) != len(names):
        raise UserError(f"the data has {len(split.targets)} targets, the network predicts {list_names(names)}")
    if set(split.targets) != set(names):
        raise UserError(
            f"the data has the targets {list_names(split.targets)}, the network predicts {list_names(names)}"
        )


def _check_complete(split: RawSplit) -> None:
    for name, values in split.targets.items():
        missing = _missing(values)
        if len(missing):
            more = f" (and in {len(missing) - 1:,} more rows)" if len(missing) > 1 else ""
            raise UserError(
                f"{split.where(int(missing[0]), name)}: the target is missing{more}; fill it in, or remove the rows"
            )


def _missing(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f":
        return np.flatnonzero(np.isnan(values))
    return np.flatnonzero(values == None) if values.dtype.kind == "O" else np.array([], int)  # noqa: E711 - elementwise


def _class_names(train: RawSplit, source: str) -> tuple[str, ...]:
    """The distinct labels as text, in numerical order if all are whole numbers, else in alphabetical order."""
    (labels,) = train.targets.values()
    names = [_label(label) for label in _distinct(labels)[0]]
    if len(names) < 2:
        raise UserError(f"{source}: only one class, {shorten(names[0])}; a classifier needs at least two")
    if len(names) > _LARGEST_NUMBER_OF_CLASSES:
        raise UserError(
            f"{source}: {len(names):,} classes, and there may be {_LARGEST_NUMBER_OF_CLASSES:,}; is the target an "
            "identifier? For numbers to predict, set data.task to 'regression'"
        )
    if train.classes is not None:
        return train.classes
    try:
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    except ValueError:
        return tuple(sorted(names))


def _class_numbers(split: RawSplit, classes: tuple[str, ...]) -> Tensor:
    """The index of each label in `classes`, int64; the error for an unknown label names its place."""
    number: Mapping[str, int] = {name: i for i, name in enumerate(classes)}
    ((column, labels),) = split.targets.items()
    values, index = _distinct(labels)
    for value in values:
        if _label(value) not in number:
            first = int(np.flatnonzero(labels == value)[0])
            raise UserError(
                f"{split.where(first, column)}: class {shorten(_label(value))} does not occur in the training data"
            )
    return torch.from_numpy(np.array([number[_label(value)] for value in values], dtype=np.int64)[index])


def _label(value: object) -> str:
    """The name of a class; whole numbers have no decimal point."""
    return str(int(value)) if isinstance(value, float) and value % 1 == 0 else str(value)


def _distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values, and for each value its index among them; text is numbered, which is faster than sorting."""
    if values.dtype.kind != "O":
        return np.unique(values, return_inverse=True)
    number: dict[object, int] = {}
    index = np.array([number.setdefault(value, len(number)) for value in values.tolist()], dtype=np.int64)
    return np.array(list(number), dtype=object), index
