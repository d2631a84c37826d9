"""A checksum of the samples and targets of a split, to notice that the data of a network has changed."""

import weakref
import zlib
from pathlib import Path

import torch
from torch import Tensor

from verydeep.data._dataset import Split
from verydeep.data.own._image_files import ImageFiles

_BLOCKS = 1000  # checked samples or files of a split that stays on disk: reading all of it may take an hour
_PIECE = 2**24  # bytes of a file that are read at once
# By the tensor's id: trainings that share a dataset do not add it up again unless it was changed in place.
_known: dict[int, tuple["weakref.ref[Tensor]", int, int]] = {}


def split_checksum(split: Split, verify: bool = False) -> int:
    """The CRC-32 of all samples and targets; of a split that stays on disk, of all targets and 1,000 samples.

    For images in files, it covers the names and sizes of all files and the content of 1,000.

    Args:
        split: The split.
        verify: Whether to read all samples that stay on disk.
    """
    start = zlib.crc32(f"{split.x.dtype} {tuple(split.x.shape)}".encode(), checksum(split.y))
    if isinstance(split.x, ImageFiles):
        return _files_checksum([split.x.decoder.paths[row] for row in split.x.rows], start, verify)
    if split.prepare is not None and verify:
        for part in split.x.split(max(1, _PIECE // max(1, split.x[:1].nbytes))):
            start = checksum(part, start)
        return start
    if split.prepare is not None:
        return checksum(split.x.index_select(0, spread(len(split.x), _BLOCKS)), start)
    return zlib.crc32(_remembered(split.x).to_bytes(4, "big"), start)


def checksum(values: Tensor, start: int = 0) -> int:
    """The CRC-32 of the bytes of a tensor, continued from `start`."""
    return zlib.crc32(values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data, start)


def spread(count: int, chosen: int) -> Tensor:
    """Numbers of samples, spread evenly over `count`."""
    last = count - 1
    return torch.linspace(0, last, chosen).long().clamp(max=last)  # in float32, a large one may be rounded up


def _remembered(values: Tensor) -> int:
    reference, version, value = _known.get(id(values), (None, 0, 0))
    if reference is None or reference() is not values or version != values._version:
        key, version, value = id(values), values._version, checksum(values)
        _known[key] = weakref.ref(values, lambda _: _known.pop(key, None)), version, value
    return value


def _files_checksum(paths: list[Path], start: int, verify: bool) -> int:
    for path in paths:
        start = zlib.crc32(f"{path.parent.name}/{path.name} {path.stat().st_size}".encode(errors="replace"), start)
    for row in range(len(paths)) if verify else spread(len(paths), _BLOCKS).unique().tolist():
        with paths[row].open("rb") as file:
            while piece := file.read(_PIECE):
                start = zlib.crc32(piece, start)
    return start
