"""Where sets are looked for on this machine, and the layouts people already have."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from verydeep.data._entry import Entry, Official
from verydeep.data._files import Verified, read_official
from verydeep.errors import UserError
from verydeep.files import user_cache


@dataclass(frozen=True)
class Search:
    """What a search of this machine gave.

    Attributes:
        found: Verified files by name.
        wrong: Files that lie where a missing one should, and what is wrong with each.
        unfit: The places without a complete set.
    """

    found: Mapping[str, Verified]
    missing: tuple[Official, ...]
    wrong: tuple[str, ...]
    unfit: tuple[str, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        return self.wrong + self.unfit


def find(entry: Entry, root: Path | None) -> Search:
    """Look for each file of the set in every place; the first one with the official content is taken."""
    found, wrong = {}, []
    for official in entry.files:
        for path in _candidates(entry, official, root):
            try:
                found[official.name] = read_official(path, official)
                break
            except UserError as error:
                wrong.append(str(error))
    missing = tuple(file for file in entry.files if file.name not in found)
    return Search(found, missing, tuple(wrong), tuple(_unfit(entry, root)) if missing else ())


def places(root: Path | None) -> list[Path]:
    """The roots to look in, in order: the one given, `$VERYDEEP_DATA`, the user's cache."""
    named = os.environ.get("VERYDEEP_DATA")
    chosen = [root, Path(named) if named else None, user_cache()]
    return list(dict.fromkeys(Path(os.path.expanduser(place)) for place in chosen if place))


def folders(entry: Entry, root: Path | None) -> Iterator[Path]:
    """Every folder that may hold the set: below a root, the root itself, or what Debian's package installs."""
    for place in places(root):
        for folder in (entry.folder, entry.name, Path(entry.folder).name, "."):
            yield place / folder
    if entry.debian:
        yield Path(entry.debian.folder)


def archives(entry: Entry, root: Path | None) -> list[Path]:
    """Official archives of several files that lie in one of the folders (a single .gz is read as it is)."""
    names = [item.name for item in entry.downloads if item.name.endswith(".tar.gz")]
    paths = (folder / name for folder in folders(entry, root) for name in names)
    return [path for path in paths if os.path.isfile(path)]


def _candidates(entry: Entry, official: Official, root: Path | None) -> Iterator[Path]:
    dotted = official.name.replace("-idx", ".idx")  # as the files are named on Kaggle
    for folder in folders(entry, root):
        for name in dict.fromkeys((official.name, dotted)):
            yield from (path for path in (folder / name, folder / f"{name}.gz") if os.path.isfile(path))


def _unfit(entry: Entry, root: Path | None) -> Iterator[str]:
    debian = [Path(entry.debian.folder)] if entry.debian else []
    for place in places(root) + debian:
        yield f"{place}: {f'no complete {entry.name} there' if os.path.isdir(place) else 'no such folder'}"
