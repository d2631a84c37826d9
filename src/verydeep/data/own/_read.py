"""The user's own data: which reader a path needs, which splits come with it, and which options apply to it."""

from dataclasses import fields
from pathlib import Path

from verydeep.data._config import DataConfig
from verydeep.data.known._catalogue import KNOWN_NAMES
from verydeep.data.own._array_files import is_memory_mapped, read_memory_mapped, read_npz
from verydeep.data.own._image_folder import read_image_folder
from verydeep.data.own._in_memory import InMemory
from verydeep.data.own._raw_split import SPLIT_NAMES, RawSplit, match_split_names
from verydeep.data.own._table_files import SUFFIXES as TABLE_SUFFIXES, read_table
from verydeep.data.own._table_options import FORMAT_OPTIONS, TableOptions
from verydeep.data.own._target import split_off_target
from verydeep.errors import UserError, unknown

_SUFFIXES = (*TABLE_SUFFIXES, ".npz")
_SPLIT_OPTIONS = {"test", "validation", "folds", "fold", "train_samples", "test_path", "valid_path"}
_OPTIONS = {  # the options that have an effect on each kind of data
    "known": {"validation", "folds", "fold", "train_samples"},
    "table": {"target", "task", "categorical", "numeric", "ignore", "date_order", *FORMAT_OPTIONS, *_SPLIT_OPTIONS},
    "array": {"task", *_SPLIT_OPTIONS},
    "images": {"image_size", "channels", "verify", *_SPLIT_OPTIONS},
    "memory-mapped": {"task", "verify"},
}


def check_options(config: DataConfig, known: bool, memory: InMemory | None = None) -> None:
    """Raise if an option is set that has no effect on this kind of data."""
    allowed = _OPTIONS["known" if known else _kind_of(config, memory)]
    defaults = {field.name: field.default for field in fields(config)}
    for name in sorted(set().union(*_OPTIONS.values()) - allowed):
        if getattr(config, name) != defaults[name] and not (name == "validation" and config.validation in (0, "auto")):
            raise UserError(f"{config.source}: data.{name} cannot be used with this kind of data; leave it out")


def read_own(config: DataConfig, memory: InMemory | None = None) -> dict[str, RawSplit]:
    """Read the splits at `source`, or in memory, and at `test_path` and `valid_path`; there is at least `train`."""
    source = config.source
    splits = _read(Path(source), config) if memory is None else memory.read(config)
    for split, given in (("test", config.test_path), ("valid", config.valid_path)):
        if given is None:
            continue
        if split in splits:
            raise UserError(f"{source}: already has a {split} split; leave data.{split}_path out")
        if _kind(Path(given)) != _kind_of(config, memory):
            raise UserError(f"{given}: is not the same kind of data as {source}; give both in the same form")
        splits[split] = _single(_read(Path(given), config), given)
    return splits


def _read(path: Path, config: DataConfig) -> dict[str, RawSplit]:
    kind = _kind(path)
    if kind == "memory-mapped":
        return read_memory_mapped(path)
    if kind == "images":
        return read_image_folder(path, config.image_size, config.channels)
    if path.is_dir():
        return {split: _single(_read(file, config), str(file)) for split, file in _split_files(path).items()}
    if kind == "array":
        return read_npz(path)
    return {"train": split_off_target(read_table(path, TableOptions.of(config)), config)}


def _kind_of(config: DataConfig, memory: InMemory | None) -> str:
    return _kind(Path(config.source)) if memory is None else memory.kind


def _kind(path: Path) -> str:
    """`table`, `array`, `images` or `memory-mapped`."""
    if path.is_dir():
        files = _split_files(path)
        if not files:
            return "memory-mapped" if is_memory_mapped(path) else "images"
        path = files["train"]
    if not path.is_file():
        raise _no_such(path)
    if path.suffix.lower() not in _SUFFIXES:
        raise UserError(f"{path}: expected a file ending in {', '.join(_SUFFIXES)}, or a folder")
    return "array" if path.suffix.lower() == ".npz" else "table"


def _split_files(folder: Path) -> dict[str, Path]:
    """Find `train.csv`, `test.csv`, `valid.csv` and the like, all with the suffix of `train`; none without `train`."""
    suffix = next((suffix for suffix in _SUFFIXES if (folder / f"train{suffix}").is_file()), None)
    names = (name for name in SPLIT_NAMES if (folder / f"{name}{suffix}").is_file())
    return {split: folder / f"{name}{suffix}" for split, name in match_split_names(names, folder).items()}


def _single(splits: dict[str, RawSplit], path: str) -> RawSplit:
    if len(splits) > 1:
        raise UserError(f"{path}: holds several splits ({', '.join(splits)}); give a file or folder with a single one")
    return splits["train"]


def _no_such(path: Path) -> UserError:
    if path.suffix or len(path.parts) != 1:
        place = "" if path.is_absolute() else f" in {Path.cwd()}"
        return UserError(f"{path}: no such file or folder{place}")
    return unknown("dataset", path, KNOWN_NAMES)
