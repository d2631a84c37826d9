"""From a name or a path to prepared samples: `load_dataset` to train a network, `load_split` for a trained one."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from verydeep.config import from_dict
from verydeep.data._config import DataConfig
from verydeep.data._dataset import Dataset, Split
from verydeep.data._task import Task
from verydeep.data.known._catalogue import KNOWN_NAMES
from verydeep.data.known._fetch import load_raw
from verydeep.data.own._array_files import is_memory_mapped
from verydeep.data.own._image_files import ImageFiles
from verydeep.data.own._in_memory import InMemory, in_memory
from verydeep.data.own._raw_split import RawSplit
from verydeep.data.own._read import check_options, read_own
from verydeep.data.own._table import Table
from verydeep.data.prepare._columns import TablePreparation
from verydeep.data.prepare._fit_columns import fit_table
from verydeep.data.prepare._inputs import Inputs
from verydeep.data.prepare._preprocess import ArrayPreparation, fit_arrays
from verydeep.data.prepare._split import UnpreparedSplit, add_splits
from verydeep.data.prepare._targets import encode_targets, fit_task, ready_targets, recognise_task
from verydeep.errors import UserError, list_names

_FULL = {"digits": 16.0}  # scikit-learn's digits have 17 grey levels, other images 256


def load_dataset(
    source: str | os.PathLike[str] | DataConfig | Any,  # noqa: ANN401 - also DataFrames and pairs of arrays
    root: str | os.PathLike[str] | None = None,
    **options: Any,  # noqa: ANN401 - the fields of DataConfig, checked against their types there
) -> Dataset:
    """Load a known dataset or the user's own data, split it and prepare its values.

    Args:
        source: A name (`mnist`, `fashion-mnist`, `cifar10`, `cifar100` or `digits`); the path of a `.csv`, `.parquet`
            or `.npz` file or of a folder; a DataFrame of pandas or polars; a pair `(x, y)` of arrays or tensors; or a
            `DataConfig` with all options.
        root: The folder of known datasets; by default `$VERYDEEP_DATA` or the user's cache.
        **options: The other fields of `DataConfig`, such as `target="species"` or `validation=0.1`.

    Returns:
        The dataset; its splits are tensors that are ready for a network.

    Example:
        >>> from verydeep.data import load_dataset
        >>> load_dataset("digits", validation=0.1)
        <Dataset 'digits': 1,294 training, 144 validation and 359 test samples of shape (1, 8, 8), 10 classes>
        >>> import numpy as np
        >>> x, y = np.arange(40.0).reshape(20, 2), np.repeat(["low", "high"], 10)
        >>> load_dataset((x, y), preprocess="standardise").classes
        ('high', 'low')
    """
    memory = in_memory(source)
    return _load(_config(source, memory, options), memory, root)[0]


def load_with_raw(
    config: DataConfig, root: str | os.PathLike[str] | None = None
) -> tuple[Dataset, dict[str, UnpreparedSplit]]:
    """Load a dataset as `load_dataset` does, and the samples and targets of its splits as they were read.

    Args:
        config: The data.
        root: The folder of known datasets.
    """
    return _load(config, None, root)


def _load(
    config: DataConfig, memory: InMemory | None, root: str | os.PathLike[str] | None
) -> tuple[Dataset, dict[str, UnpreparedSplit]]:
    known = memory is None and config.source in KNOWN_NAMES
    check_options(config, known, memory)
    splits, task = _known_splits(config.source, root) if known else _own_splits(config, memory)
    splits = add_splits(splits, config)
    task = fit_task(task, splits["train"].y, config.source)
    if isinstance(splits["train"].x, Table):
        return _from_tables(splits, task, config), splits
    lazily = not known and memory is None and is_memory_mapped(Path(config.source))
    return _from_arrays(splits, task, config, lazily), splits


def load_split(inputs: Inputs, trained: DataConfig, source: str, split: str, root: str | Path | None = None) -> Split:
    """Load one split of other data for a trained network: prepared as its training data, classes matched by name.

    Data without splits is used in full.

    Args:
        inputs: What the network expects.
        trained: How its training data was read: target, delimiter and image size are taken from there.
        source: A known name, or the path of a file or folder.
        split: `train`, `valid` or `test`.
        root: The folder of known datasets.
    """
    if source in KNOWN_NAMES:
        return _known_split(inputs, source, split, root)
    splits = read_own(_read_as_trained(trained, inputs, source))
    if len(splits) == 1:
        return replace(_own_split(inputs, next(iter(splits.values())), source), whole=True)
    if split not in splits:
        raise UserError(f"{source}: has no {split} split, only {', '.join(splits)}")
    return _own_split(inputs, splits[split], source)


def raw_samples(config: DataConfig, count: int, root: str | Path | None = None) -> Tensor | Table:
    """The first samples of the test split, or of data without splits, as they were read."""
    if config.source in KNOWN_NAMES:
        return load_raw(config.source, root).test.x[:count]
    splits = read_own(config)
    x = splits.get("test", splits["train"]).x
    return x[torch.arange(min(count, len(x)))] if isinstance(x, Table) else x[:count]


def _config(source: object, memory: InMemory | None, options: dict[str, Any]) -> DataConfig:
    if isinstance(source, DataConfig):
        if options:
            raise UserError("load_dataset: give options in the DataConfig or as arguments, not both")
        return source
    if memory is None and not isinstance(source, str | os.PathLike):
        raise UserError(
            "load_dataset takes a name, a path, a DataFrame, a pair (x, y) of arrays or a DataConfig; "
            f"got {type(source).__name__}"
        )
    plain: dict[str, Any] = {key: list(value) if isinstance(value, tuple) else value for key, value in options.items()}
    for path in ("test_path", "valid_path"):
        if isinstance(given := options.get(path), os.PathLike):
            plain[path] = os.fspath(given)
    name = os.fspath(source) if memory is None else memory.name  # type: ignore[call-overload]
    return from_dict(DataConfig, {"source": name, **plain}, "load_dataset")


def _known_splits(name: str, root: str | os.PathLike[str] | None) -> tuple[dict[str, UnpreparedSplit], Task]:
    raw = load_raw(name, None if root is None else Path(root))
    splits = {"train": raw.train, "test": raw.test}
    task = Task("classification", raw.classes)
    return {split: UnpreparedSplit(samples.x, samples.y) for split, samples in splits.items()}, task


def _own_splits(config: DataConfig, memory: InMemory | None) -> tuple[dict[str, UnpreparedSplit], Task]:
    raw = read_own(config, memory)
    task = recognise_task(raw["train"], config)
    return {split: UnpreparedSplit(part.x, encode_targets(part, task)) for split, part in raw.items()}, task


def _from_tables(splits: dict[str, UnpreparedSplit], task: Task, config: DataConfig) -> Dataset:
    tables = {split: part.x for split, part in splits.items() if isinstance(part.x, Table)}
    preparation = fit_table(tables["train"], config)
    ready = {
        split: Split(preparation(table), ready_targets(task, splits[split].y), task=task)
        for split, table in tables.items()
    }
    return _dataset(config, ready, task, preparation)


def _from_arrays(splits: dict[str, UnpreparedSplit], task: Task, config: DataConfig, lazily: bool) -> Dataset:
    arrays = {split: part.x for split, part in splits.items() if isinstance(part.x, Tensor)}
    preparation = fit_arrays(arrays["train"], config.preprocess, _FULL.get(config.source, 256.0), config.contrast_norm)
    ready = {split: _array_split(x, splits[split].y, preparation, split, lazily, task) for split, x in arrays.items()}
    return _dataset(config, ready, task, preparation)


def _dataset(
    config: DataConfig, ready: dict[str, Split], task: Task, preparation: ArrayPreparation | TablePreparation
) -> Dataset:
    classes = task.names if task.kind == "classification" else ()
    valid, held_out = ready.get("valid"), ready.get("held_out")
    return Dataset(_name(config), ready["train"], valid, ready["test"], classes, preparation, task, held_out)


def _array_split(x: Tensor, y: Tensor, preparation: ArrayPreparation, where: str, lazily: bool, task: Task) -> Split:
    """Prepare samples now, or, for those that stay on disk, leave it to `Batches`."""
    preparation.check_shape(x, where)
    targets = ready_targets(task, y)
    if lazily or isinstance(x, ImageFiles):
        return Split(x, targets, preparation, task=task)
    return Split(preparation.whole(x, where), targets, task=task)


def _name(config: DataConfig) -> str:
    path = Path(config.source)
    return path.stem if path.suffix and not path.is_dir() else path.name


def _known_split(inputs: Inputs, name: str, split: str, root: str | Path | None) -> Split:
    raw = load_raw(name, root)
    part = {"train": raw.train, "test": raw.test}.get(split)
    if part is None:
        raise UserError(f"{name}: has no {split} split; choose train or test")
    unknown = [label for label in raw.classes if label not in inputs.classes]
    if unknown:
        raise UserError(
            f"{name}: class '{unknown[0]}' is not one of the network's classes: {list_names(inputs.classes)}"
        )
    numbers = torch.tensor([inputs.classes.index(label) for label in raw.classes])
    preparation = _array_preparation(inputs, part.x, name)
    return _array_split(part.x, numbers[part.y], preparation, name, lazily=False, task=inputs.task)


def _own_split(inputs: Inputs, raw: RawSplit, source: str) -> Split:
    if isinstance(raw.x, Table):
        if isinstance(inputs.preparation, ArrayPreparation):
            raise UserError(
                f"{source}: is a table, but the network was trained on samples of shape {inputs.preparation.shape}"
            )
        y = ready_targets(inputs.task, encode_targets(raw, inputs.task))
        return Split(inputs.preparation(raw.x), y, task=inputs.task)
    preparation = _array_preparation(inputs, raw.x, source)
    y = encode_targets(raw, inputs.task)
    return _array_split(raw.x, y, preparation, source, lazily=is_memory_mapped(Path(source)), task=inputs.task)


def _array_preparation(inputs: Inputs, x: Tensor, source: str) -> ArrayPreparation:
    """The network's preparation; an error if the network was trained on a table or on samples of another shape."""
    if isinstance(inputs.preparation, ArrayPreparation):
        inputs.preparation.check_shape(x, source)
        return inputs.preparation
    names = list_names(inputs.preparation.names)
    raise UserError(f"{source}: is not a table; the network was trained on a table with the columns {names}")


def _read_as_trained(trained: DataConfig, inputs: Inputs, source: str) -> DataConfig:
    """Read as the training data was, but without random splits, ignoring any extra columns."""
    preparation = inputs.preparation
    first = preparation.shape[0] if isinstance(preparation, ArrayPreparation) else None
    return replace(
        trained,
        source=source,
        target=trained.target or inputs.task.target,
        test=None,
        validation=None,
        folds=None,
        fold=0,
        train_samples=None,
        test_path=None,
        valid_path=None,
        channels=1 if first == 1 else 3 if first == 3 else None,
        categorical=tuple(preparation.text_columns) if isinstance(preparation, TablePreparation) else (),
        numeric=(),
        ignore=("",),
    )
