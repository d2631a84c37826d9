"""The user's own data: which reader a path needs, and which splits come with it."""

from dataclasses import fields
from pathlib import Path

from verydeep.data._config import DataConfig
from verydeep.data._images import read_images
from verydeep.data._labels import Labelled
from verydeep.data._memmap import read_memmap
from verydeep.data._npz import read_npz
from verydeep.data._roles import NAMES, by_role
from verydeep.data._table_files import SUFFIXES as TABLES
from verydeep.data._target import read_labelled_table
from verydeep.errors import UserError, unknown

_FILES = (*TABLES, ".npz")
_SPLITTING = {"test", "validation", "test_path", "valid_path"}
_USED = {  # which options do something for which kind of data
    "known": {"validation"},
    "table": {"target", "categorical", "ignore", "delimiter", *_SPLITTING},
    "array": _SPLITTING,
    "images": {"image_size", "channels", *_SPLITTING},
    "memmap": set[str](),
}


def check_options(config: DataConfig, known: bool) -> None:
    """Refuse options that do nothing for this kind of data."""
    used = _USED["known" if known else _kind(Path(config.source))]
    defaults = {field.name: field.default for field in fields(config)}
    for name in sorted(set().union(*_USED.values()) - used):
        if getattr(config, name) != defaults[name]:
            raise UserError(f"{config.source}: the option {name} cannot be used with this kind of data; leave it out")


def read_own(config: DataConfig) -> dict[str, Labelled]:
    """The splits found at `source`, `test_path` and `valid_path`; at least `train`."""
    source = Path(config.source)
    parts = _read(source, config)
    for role, given in (("test", config.test_path), ("valid", config.valid_path)):
        if given is None:
            continue
        if role in parts:
            raise UserError(f"{source}: has a {role} split of its own; leave {role}_path out")
        if _kind(Path(given)) != _kind(source):
            raise UserError(f"{given}: is of another kind than {source}; give both in the same form")
        parts[role] = _single(_read(Path(given), config), given)
    return parts


def is_memory_mapped(path: Path) -> bool:
    """Whether the path is a folder whose samples stay on disk."""
    return (path / "train_x.npy").exists()


def _read(path: Path, config: DataConfig) -> dict[str, Labelled]:
    kind = _kind(path)
    if kind == "memmap":
        return read_memmap(path)
    if kind == "images":
        return read_images(path, config.image_size, config.channels)
    if path.is_dir():
        return {role: _single(_read(file, config), str(file)) for role, file in _split_files(path).items()}
    return read_npz(path) if kind == "array" else {"train": read_labelled_table(path, config)}


def _kind(path: Path) -> str:
    """`table`, `array`, `images` or `memmap`."""
    if path.is_dir():
        files = _split_files(path)
        if not files:
            return "memmap" if is_memory_mapped(path) else "images"
        path = files["train"]
    if not path.is_file():
        raise _no_such(path)
    if path.suffix.lower() not in _FILES:
        raise UserError(f"{path}: expected a file ending in {', '.join(_FILES)}, or a folder")
    return "array" if path.suffix.lower() == ".npz" else "table"


def _split_files(folder: Path) -> dict[str, Path]:
    """`train.csv`, `test.csv`, `valid.csv` and the like, all of the suffix of the first; none without `train`."""
    suffix = next((suffix for suffix in _FILES if (folder / f"train{suffix}").is_file()), None)
    names = (name for name in NAMES if (folder / f"{name}{suffix}").is_file())
    return {role: folder / f"{name}{suffix}" for role, name in by_role(names, folder).items()}


def _single(parts: dict[str, Labelled], path: str) -> Labelled:
    if len(parts) > 1:
        raise UserError(f"{path}: holds several splits ({', '.join(parts)}); give one that holds a single one")
    return parts["train"]


def _no_such(path: Path) -> UserError:
    from verydeep.data._catalogue import NAMES

    if path.suffix or len(path.parts) != 1:
        place = "" if path.is_absolute() else f" in {Path.cwd()}"
        return UserError(f"{path}: no such file or folder{place}")
    return unknown("dataset", path, NAMES)
