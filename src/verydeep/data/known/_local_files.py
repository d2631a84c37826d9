"""Official files on this machine: where they are looked for, how they are verified, how new ones are put in place."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from verydeep.data.known._archive import read_gzip
from verydeep.data.known._catalogue import KnownDataset, OfficialFile
from verydeep.errors import UserError
from verydeep.files import user_cache, write_atomic


@dataclass(frozen=True)
class VerifiedFile:
    """The content of an official file, its digest checked, and where it was read."""

    path: Path
    data: bytes


@dataclass(frozen=True)
class FoundFiles:
    """The result of looking for a dataset's files on this machine.

    Attributes:
        verified: Verified files by name.
        missing: Official files that were not found anywhere.
        rejected: One message per file that has the name of an official one but other content.
        incomplete: One message per place that does not hold the complete dataset.
    """

    verified: Mapping[str, VerifiedFile]
    missing: tuple[OfficialFile, ...]
    rejected: tuple[str, ...]
    incomplete: tuple[str, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        return self.rejected + self.incomplete


def find_files(known: KnownDataset, root: Path | None) -> FoundFiles:
    """Look for each file of the dataset in every place, and take the first one with the official content."""
    verified, rejected = {}, []
    for official in known.files:
        for path in _candidates(known, official, root):
            try:
                verified[official.name] = _read_official(path, official)
                break
            except UserError as error:
                rejected.append(str(error))
    missing = tuple(file for file in known.files if file.name not in verified)
    return FoundFiles(verified, missing, tuple(rejected), tuple(_incomplete(known, root)) if missing else ())


def locate_files(known: KnownDataset, root: Path | None) -> tuple[list[Path], list[str]]:
    """Look for each file of the dataset by name and size, without reading it.

    Returns:
        The first file of the official size for each official file that has one (a gzipped one may have any size), and
        a message about each file of another size.
    """
    found, wrong = [], []
    for official in known.files:
        for path in _candidates(known, official, root):
            size = path.stat().st_size
            if path.suffix == ".gz" or size == official.size:
                found.append(path)
                break
            wrong.append(f"{path}: {size} bytes, the official file has {official.size}")
    return found, wrong


def find_archives(known: KnownDataset, root: Path | None) -> list[Path]:
    """Find official `.tar.gz` archives in the folders of the dataset (a single `.gz` is read directly)."""
    names = [item.name for item in known.downloads if item.name.endswith(".tar.gz")]
    paths = (folder / name for folder in _folders(known, root) for name in names)
    return [path for path in paths if os.path.isfile(path)]


def search_roots(root: Path | None) -> list[Path]:
    """The roots to look in, in order: the given one, `$VERYDEEP_DATA`, the user's cache."""
    named = os.environ.get("VERYDEEP_DATA")
    roots = [root, Path(named) if named else None, user_cache()]
    return list(dict.fromkeys(Path(os.path.expanduser(place)) for place in roots if place))


def check_official(data: bytes, official: OfficialFile, where: str) -> None:
    """Raise unless the bytes are those of the official file."""
    if len(data) != official.size:
        raise UserError(f"{where}: {len(data)} bytes, the official file has {official.size}")
    digest = hashlib.sha256(data).hexdigest()
    if digest != official.sha256:
        raise UserError(f"{where}: not the official file (SHA-256 {digest[:12]}..., not {official.sha256[:12]}...)")


def install(path: Path, data: bytes) -> None:
    """Put a new file in place; an existing file is never replaced."""
    refuse_to_replace([path])
    write_atomic(path, data)


def refuse_to_replace(paths: Iterable[Path]) -> None:
    """Raise if a path exists: a file that is not the official one belongs to the user, who may remove it."""
    for path in paths:
        if os.path.lexists(path):
            raise UserError(f"{path}: already exists and is not replaced; rename or delete it and try again")


def _read_official(path: Path, official: OfficialFile) -> VerifiedFile:
    """Read a plain or gzipped file, and raise unless its content is the official one.

    The whole file is hashed on every read. This takes a small part of the loading time, so caching earlier checks
    would save little and could be wrong.
    """
    try:
        data = read_gzip(path, official.size) if path.suffix == ".gz" else _read_plain(path, official.size)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error
    check_official(data, official, str(path))
    return VerifiedFile(path, data)


def _read_plain(path: Path, size: int) -> bytes:
    actual = path.stat().st_size
    if actual != size:  # checked before reading: a wrong file may be huge
        raise UserError(f"{path}: {actual} bytes, the official file has {size}")
    return path.read_bytes()


def _folders(known: KnownDataset, root: Path | None) -> Iterator[Path]:
    """Every folder that may hold the dataset: below a root, the root itself, or where Debian's package installs it."""
    for place in search_roots(root):
        for folder in (known.folder, known.name, Path(known.folder).name, "."):
            yield place / folder
    if known.debian:
        yield Path(known.debian.folder)


def _candidates(known: KnownDataset, official: OfficialFile, root: Path | None) -> Iterator[Path]:
    dotted = official.name.replace("-idx", ".idx")  # the file names on Kaggle
    for folder in _folders(known, root):
        for name in dict.fromkeys((official.name, dotted)):
            yield from (path for path in (folder / name, folder / f"{name}.gz") if os.path.isfile(path))


def _incomplete(known: KnownDataset, root: Path | None) -> Iterator[str]:
    debian = [Path(known.debian.folder)] if known.debian else []
    for place in search_roots(root) + debian:
        yield f"{place}: {f'no complete {known.name} there' if os.path.isdir(place) else 'no such folder'}"
