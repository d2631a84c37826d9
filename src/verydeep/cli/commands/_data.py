"""`verydeep data`: list, download, check and show the known datasets."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from verydeep.cli._options import option, read_options
from verydeep.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verydeep.data import Dataset, KnownDataset, VerifiedFile

Name = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
Root = Annotated[Path | None, option("FOLDER")]
_ROW = "{:14} {:>7}  {:11} {:>4}  {}"


@dataclass(frozen=True)
class DataListOptions:
    """List the known datasets: number of classes, image size, megabytes, and where each was found and verified."""

    root: Root = None
    """Search this folder first, then $VERYDEEP_DATA and the user's cache."""

    def run(self) -> None:
        from verydeep.data import KNOWN_DATASETS

        print(_ROW.format("set", "classes", "image", "MB", "where"))
        for known in KNOWN_DATASETS.values():
            size = sum(file.size for file in known.files) / 1e6
            image = " x ".join(map(str, known.image))
            where = _whereabouts(known, self.root)
            print(_ROW.format(known.name, len(known.classes), image, f"{size:.0f}", where))
        print(_ROW.format("digits", 10, "1 x 8 x 8", 0, "always there, part of scikit-learn"))


@dataclass(frozen=True)
class DataGetOptions:
    """Find a dataset on this machine or download it, if necessary through npm, and verify every digest."""

    name: Name
    """The dataset: mnist, fashion-mnist, cifar10, cifar100 or digits."""

    root: Root = None
    """Store it in this folder; by default, in $VERYDEEP_DATA or the user's cache."""

    def run(self) -> None:
        from verydeep.data import fetch_files

        if self.name == "digits":
            print("digits: part of scikit-learn, always there")
            return
        files = fetch_files(self.name, self.root)
        size = sum(len(file.data) for file in files.values()) / 1e6
        print(f"{self.name}: {len(files)} files, {size:.0f} MB, digests right, in {_folders(files)}")


@dataclass(frozen=True)
class DataCheckOptions:
    """Check a dataset on this machine: verify the digest of every file and count the samples per class."""

    name: Name
    """The dataset: mnist, fashion-mnist, cifar10, cifar100 or digits."""

    root: Root = None
    """Search this folder first, then $VERYDEEP_DATA and the user's cache."""

    def run(self) -> None:
        from verydeep.data import find_files, known_dataset, load_raw, parse_dataset

        if self.name == "digits":
            _print_counts(load_raw("digits"))
            return
        known = known_dataset(self.name)
        found = find_files(known, self.root)
        for official in known.files:
            if official.name in found.verified:
                print(f"right    {found.verified[official.name].path}  SHA-256 {official.sha256}")
        if found.missing:
            raise UserError(f"{self.name} is not whole here:\n" + "\n".join(f"  - {why}" for why in found.problems))
        _print_counts(parse_dataset(known, found.verified))


@dataclass(frozen=True)
class DataShowOptions:
    """Draw a contact sheet with a row of samples per class."""

    name: Name
    """The dataset: mnist, fashion-mnist, cifar10, cifar100 or digits."""

    out: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """The PNG file to write."""

    root: Root = None
    """Search this folder first, and store a downloaded dataset in it."""

    samples: int = 10
    """The number of samples per class."""

    def run(self) -> None:
        from verydeep.data import contact_sheet, load_raw, save_contact_sheet

        save_contact_sheet(contact_sheet(load_raw(self.name, self.root), self.samples), self.out)
        print(self.out)


def _whereabouts(known: "KnownDataset", root: Path | None) -> str:
    from verydeep.data import find_files

    found = find_files(known, root)
    if not found.missing:
        return f"verified, {_folders(found.verified)}"
    if found.rejected:
        return f"NOT verified, {found.rejected[0]}"
    return f"not here: verydeep data get {known.name}"


def _folders(files: "Mapping[str, VerifiedFile]") -> str:
    return " and ".join(sorted({str(file.path.parent) for file in files.values()}))


def _print_counts(dataset: "Dataset") -> None:
    width = max(map(len, ("class", *dataset.classes)))
    train, test = (split.y.bincount(minlength=len(dataset.classes)).tolist() for split in (dataset.train, dataset.test))
    print(f"{'class':>{width}}  train   test")
    for row in zip(dataset.classes, train, test, strict=True):
        print(f"{row[0]:>{width}} {row[1]:6} {row[2]:6}")
    print(f"{'all':>{width}} {sum(train):6} {sum(test):6}")


Subcommand = (
    Annotated[DataListOptions, tyro.conf.subcommand("list")]
    | Annotated[DataGetOptions, tyro.conf.subcommand("get")]
    | Annotated[DataCheckOptions, tyro.conf.subcommand("check")]
    | Annotated[DataShowOptions, tyro.conf.subcommand("show")]
)


def main(arguments: list[str]) -> None:
    """Run the command."""
    subcommand: Any = Subcommand
    description = "List, download, check and show the known datasets."
    read_options(subcommand, "data", arguments, description=description).run()
