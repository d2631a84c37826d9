"""What the catalogue says of a set: its official files, and where each can be had."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Official:
    """One unpacked file as its authors published it."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Download:
    """One archive on the web, and the names of the official files inside it."""

    name: str
    size: int
    sha256: str
    mirrors: tuple[str, ...]
    holds: tuple[str, ...]


@dataclass(frozen=True)
class Npm:
    """A package whose content is the set: the files themselves, or one PNG row per image and labels as JSON."""

    package: str
    version: str
    layout: Literal["files", "png-rows"]


@dataclass(frozen=True)
class Debian:
    """A Debian package, and the folder it installs to."""

    package: str
    folder: str


@dataclass(frozen=True)
class Entry:
    """One set of the catalogue.

    Attributes:
        folder: Where the files live below a root; the layout torchvision and the official archives use.
        image: Channels, height and width.
        train: Files of the training split; for idx the images, then their classes.
        labels: How many values each label byte of a CIFAR record may take; the last one is the class. Empty for idx.
    """

    name: str
    folder: str
    image: tuple[int, int, int]
    classes: tuple[str, ...]
    train: tuple[Official, ...]
    test: tuple[Official, ...]
    downloads: tuple[Download, ...]
    labels: tuple[int, ...] = ()
    npm: Npm | None = None
    debian: Debian | None = None

    @property
    def files(self) -> tuple[Official, ...]:
        return self.train + self.test
