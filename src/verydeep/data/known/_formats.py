"""Strict parsers for the two file formats of the paper's datasets: idx (MNIST) and CIFAR's fixed-size records.

Both formats are plain bytes, so reading them never runs code. Sizes in the header must match the file to the byte.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from verydeep.data._dataset import Dataset, Split
from verydeep.data.known._catalogue import KnownDataset, OfficialFile
from verydeep.data.known._local_files import VerifiedFile
from verydeep.errors import UserError

Bytes = NDArray[np.uint8]


def parse_dataset(known: KnownDataset, files: Mapping[str, VerifiedFile]) -> Dataset:
    """Parse the files of a known dataset to tensors."""
    train, test = (_parse_split(known, split, files) for split in (known.train, known.test))
    return Dataset(known.name, train, None, test, known.classes)


def parse_idx(data: bytes, axes: int, where: str) -> Bytes:
    """Parse an idx file of unsigned bytes: two zeros, type 0x08, number of axes, four bytes per axis, then values."""
    if len(data) < 4 + 4 * axes:
        raise UserError(f"{where}: {len(data)} bytes are too few for an idx header of {axes} axes")
    if data[:4] != bytes((0, 0, 8, axes)):
        raise UserError(
            f"{where}: starts with {data[:4].hex(' ')}, but an idx file of {axes} axes starts with 00 00 08 {axes:02x}"
        )
    shape = tuple(int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(axes))
    expected = 4 + 4 * axes + math.prod(shape)
    if len(data) != expected or 0 in shape:
        shown = " x ".join(map(str, shape))
        raise UserError(f"{where}: header says {shown}, which is {expected} bytes, but the file has {len(data)}")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def parse_idx_split(images: bytes, labels: bytes, classes: int, where: tuple[str, str]) -> tuple[Bytes, Bytes]:
    """Parse the two idx files of a split to images `(n, 1, height, width)` and class numbers `(n,)`."""
    x, y = parse_idx(images, 3, where[0]), parse_idx(labels, 1, where[1])
    if len(x) != len(y):
        raise UserError(f"{where[0]}: {len(x)} images, but {where[1]} has {len(y)} labels")
    _check_labels(y, classes, where[1])
    return x[:, None], y


def parse_cifar(data: bytes, labels: tuple[int, ...], image: tuple[int, int, int], where: str) -> tuple[Bytes, Bytes]:
    """Parse records to images `(n, channels, height, width)` and class numbers `(n,)`.

    A record is its label bytes, then one image, channel by channel.

    Args:
        data: The file.
        labels: The number of values of each label byte; the last byte is the class.
        image: Channels, height and width.
        where: The file's name, for errors.
    """
    record = len(labels) + math.prod(image)
    if len(data) % record or not data:
        raise UserError(f"{where}: {len(data)} bytes are not a whole number of {record}-byte records")
    rows = np.frombuffer(data, np.uint8).reshape(-1, record)
    for column, count in enumerate(labels):
        _check_labels(rows[:, column], count, where)
    return rows[:, len(labels) :].reshape(-1, *image), rows[:, len(labels) - 1]


def _parse_split(known: KnownDataset, split: Sequence[OfficialFile], files: Mapping[str, VerifiedFile]) -> Split:
    sources = [files[official.name] for official in split]
    if known.labels:
        parts = [parse_cifar(file.data, known.labels, known.image, str(file.path)) for file in sources]
    else:
        images, labels = sources
        where = (str(images.path), str(labels.path))
        parts = [parse_idx_split(images.data, labels.data, len(known.classes), where)]
    x, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Split(torch.from_numpy(x), torch.from_numpy(y.astype(np.int64)))


def _check_labels(y: Bytes, count: int, where: str) -> None:
    wrong = np.flatnonzero(y >= count)
    if len(wrong):
        raise UserError(f"{where}: label {y[wrong[0]]} of sample {wrong[0]} is outside 0..{count - 1}")
