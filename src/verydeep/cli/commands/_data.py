"""`verydeep data`: list, download, check and show the known datasets."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from verydeep.cli._options import option, positional, read_options
from verydeep.cli._status import load_torch, status
from verydeep.errors import UserError, unknown
from verydeep.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verydeep.data import Dataset, KnownDataset, VerifiedFile

Name = Annotated[str, positional("NAME", "The dataset: mnist, fashion-mnist, cifar10, cifar100 or digits.")]
Root = Annotated[Path | None, option("FOLDER")]
_ROW = "{:14} {:>7}  {:11} {:>4}  {}"


@dataclass(frozen=True)
class DataListOptions:
    """List the known datasets: number of classes, image size, megabytes, and where each is stored.

    Files are compared by name and size; verydeep data check NAME verifies their content.
    """

    root: Root = None
    """Search this folder first, then $VERYDEEP_DATA and the user's cache."""

    def run(self) -> None:
        from verydeep.data import KNOWN_DATASETS

        echo(_ROW.format("dataset", "classes", "image", "MB", "where"))
        for known in KNOWN_DATASETS.values():
            size = sum(file.size for file in known.files) / 1e6
            image = " x ".join(map(str, known.image))
            where = _whereabouts(known, self.root)
            echo(_ROW.format(known.name, len(known.classes), image, f"{size:.0f}", where))
        echo(_ROW.format("digits", 10, "1 x 8 x 8", 0, "part of scikit-learn"))


@dataclass(frozen=True)
class DataGetOptions:
    """Find a dataset on this machine or download it, from a mirror or npm if necessary, and verify its digests."""

    name: Name
    root: Root = None
    """Store it in this folder; by default, in $VERYDEEP_DATA or the user's cache."""

    def run(self) -> None:
        if self.name == "digits":
            echo("digits: part of scikit-learn, always available")
            return
        load_torch()
        from verydeep.data import fetch_files

        with status(f"looking for {self.name}"):
            files = fetch_files(self.name, self.root)
        size = sum(len(file.data) for file in files.values()) / 1e6
        echo(f"{self.name}: {len(files)} files, {size:.0f} MB, digests verified, in {_folders(files)}")


@dataclass(frozen=True)
class DataCheckOptions:
    """Check a dataset on this machine: verify the digest of every file and count the samples per class."""

    name: Name
    root: Root = None
    """Search this folder first, then $VERYDEEP_DATA and the user's cache."""

    def run(self) -> None:
        load_torch()
        from verydeep.data import find_files, known_dataset, load_raw, parse_dataset

        if self.name == "digits":
            _print_counts(load_raw("digits"))
            return
        known = known_dataset(self.name)
        with status(f"verifying {self.name}"):
            found = find_files(known, self.root)
        for official in known.files:
            if official.name in found.verified:
                echo(f"verified {found.verified[official.name].path}  SHA-256 {official.sha256}")
        if found.missing:
            raise UserError(f"{self.name} is incomplete here:\n" + "\n".join(f"  - {why}" for why in found.problems))
        _print_counts(parse_dataset(known, found.verified))


@dataclass(frozen=True)
class DataShowOptions:
    """Draw a contact sheet with a row of samples per class."""

    name: Name
    out: Annotated[Path, option("FILE", aliases=("-o",))]
    """The PNG file to write."""
    root: Root = None
    """Search this folder first, and store a downloaded dataset in it."""
    samples: int = 10
    """The number of samples per class."""

    def run(self) -> None:
        load_torch()
        from verydeep.data import contact_sheet, load_raw, save_contact_sheet

        with status(f"reading {self.name}"):
            dataset = load_raw(self.name, self.root)
        save_contact_sheet(contact_sheet(dataset, self.samples), self.out)
        echo(str(self.out))


OPTIONS = {
    "data list": DataListOptions,
    "data get": DataGetOptions,
    "data check": DataCheckOptions,
    "data show": DataShowOptions,
}


@dataclass(frozen=True)
class DataOptions:
    """List, download, check and show the known datasets.

    data list        The known datasets, and where they are stored.
    data get NAME    Find a dataset on this machine or download it.
    data check NAME  Verify its files and count its samples.
    data show NAME   Draw some samples of every class.
    """


def main(arguments: list[str]) -> None:
    """Run the command."""
    if not arguments or arguments[0].startswith("-"):
        read_options(DataOptions, "data", arguments or ["--help"])
    name = f"data {arguments[0]}"
    if name not in OPTIONS:
        raise unknown("command of verydeep data", arguments[0], [name.removeprefix("data ") for name in OPTIONS])
    options: DataListOptions | DataGetOptions | DataCheckOptions | DataShowOptions
    options = read_options(OPTIONS[name], name, arguments[1:])
    options.run()


def _whereabouts(known: "KnownDataset", root: Path | None) -> str:
    from verydeep.data import locate_files

    found, wrong = locate_files(known, root)
    if len(found) == len(known.files):
        return " and ".join(sorted({str(path.parent) for path in found}))
    return f"wrong file: {wrong[0]}" if wrong else f"not here: verydeep data get {known.name}"


def _folders(files: "Mapping[str, VerifiedFile]") -> str:
    return " and ".join(sorted({str(file.path.parent) for file in files.values()}))


def _print_counts(dataset: "Dataset") -> None:
    width = max(map(len, ("class", *dataset.classes)))
    train, test = (split.y.bincount(minlength=len(dataset.classes)).tolist() for split in (dataset.train, dataset.test))
    echo(f"{'class':>{width}}  train   test")
    for row in zip(dataset.classes, train, test, strict=True):
        echo(f"{row[0]:>{width}} {row[1]:6} {row[2]:6}")
    echo(f"{'all':>{width}} {sum(train):6} {sum(test):6}")
