"""One call from a name or a path to a dataset that is split and prepared."""

import os
from pathlib import Path
from typing import Any

from torch import Tensor

from verydeep.config import from_dict
from verydeep.data._arrays import ArrayPreparation, fit_arrays
from verydeep.data._columns import fit_table
from verydeep.data._config import DataConfig
from verydeep.data._dataset import Dataset, Split
from verydeep.data._labels import class_names, class_numbers
from verydeep.data._own import check_options, is_memory_mapped, read_own
from verydeep.data._split import Part, split
from verydeep.data._table import Table
from verydeep.errors import UserError

_FULL = {"digits": 16.0}  # scikit-learn's digits have 17 grey levels, other images 256


def load_dataset(
    source: str | os.PathLike[str] | DataConfig,
    root: str | os.PathLike[str] | None = None,
    **options: Any,  # noqa: ANN401 - the fields of DataConfig, checked against their types there
) -> Dataset:
    """A known set by name, or the user's own by its path, split and prepared.

    Args:
        source: `mnist`, `fashion-mnist`, `cifar10`, `cifar100` or `digits`; the path of a `.csv`, `.parquet` or `.npz`
            file or of a folder; or a `DataConfig`, which says everything.
        root: Where known sets are kept; by default `$VERYDEEP_DATA` or the user's cache.
        **options: The other fields of `DataConfig`, such as `target="species"` or `validation=0.1`.
    """
    from verydeep.data._catalogue import NAMES

    config = _config(source, options)
    known = config.source in NAMES
    check_options(config, known)
    parts, classes = _known(config.source, root) if known else _own(config)
    parts = split(parts, config)
    if isinstance(parts["train"].x, Table):
        return _from_tables(parts, classes, config)
    return _from_arrays(parts, classes, config, lazily=not known and is_memory_mapped(Path(config.source)))


def _config(source: str | os.PathLike[str] | DataConfig, options: dict[str, Any]) -> DataConfig:
    if isinstance(source, DataConfig):
        if options:
            raise UserError("load_dataset: give options in the DataConfig or as arguments, not both")
        return source
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in options.items()}
    return from_dict(DataConfig, {"source": os.fspath(source), **plain}, "load_dataset")


def _known(name: str, root: str | os.PathLike[str] | None) -> tuple[dict[str, Part], tuple[str, ...]]:
    from verydeep.data._fetch import load_raw

    raw = load_raw(name, None if root is None else Path(root))
    return {"train": Part(raw.train.x, raw.train.y), "test": Part(raw.test.x, raw.test.y)}, raw.classes


def _own(config: DataConfig) -> tuple[dict[str, Part], tuple[str, ...]]:
    labelled = read_own(config)
    classes = class_names(labelled["train"], config.source)
    return {role: Part(part.x, class_numbers(part, classes)) for role, part in labelled.items()}, classes


def _from_tables(parts: dict[str, Part], classes: tuple[str, ...], config: DataConfig) -> Dataset:
    tables = {role: part.x for role, part in parts.items() if isinstance(part.x, Table)}
    preparation = fit_table(tables["train"], config)
    splits = {role: Split(preparation(table), parts[role].y) for role, table in tables.items()}
    return Dataset(_name(config), splits["train"], splits.get("valid"), splits["test"], classes, preparation)


def _from_arrays(parts: dict[str, Part], classes: tuple[str, ...], config: DataConfig, lazily: bool) -> Dataset:
    arrays = {role: part.x for role, part in parts.items() if isinstance(part.x, Tensor)}
    preparation = fit_arrays(arrays["train"], config.preprocess, _FULL.get(config.source, 256.0))
    splits = {role: _array_split(x, parts[role].y, preparation, role, lazily) for role, x in arrays.items()}
    return Dataset(_name(config), splits["train"], splits.get("valid"), splits["test"], classes, preparation)


def _array_split(x: Tensor, y: Tensor, preparation: ArrayPreparation, role: str, lazily: bool) -> Split:
    preparation.check_shape(x, role)
    return Split(x, y, preparation) if lazily else Split(preparation.whole(x, role), y)


def _name(config: DataConfig) -> str:
    path = Path(config.source)
    return path.stem if path.suffix and not path.is_dir() else path.name
