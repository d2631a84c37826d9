"""`ImageFiles`: the images of a folder as one tensor whose pixels stay in their files until they are used.

It serves folders that do not fit into memory. Every user of a split can treat it as a tensor of bytes: a slice or a
tensor of rows selects files, `index_select`, which batches use, decodes the selected ones, and any other operation
decodes all of them.
"""

import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from verydeep.errors import UserError

_BLOCK = 2**26  # bytes of images that are decoded at once when all are needed one after the other
_MANY = 2000  # images from which on progress is shown

T = TypeVar("T")


class Decoder:
    """Decodes the images of a folder, in as many threads as torch uses, and keeps the first ones in memory.

    Args:
        paths: The files.
        shape: `(channels, height, width)` of every image.
        read: Reads the image of a file as an array of this shape.
        keep: How many bytes of decoded images stay in memory, so that they are decoded only once.
    """

    def __init__(
        self, paths: Sequence[Path], shape: tuple[int, int, int], read: Callable[[Path], np.ndarray], keep: int
    ) -> None:
        self.paths, self.shape, self.read = paths, shape, read
        room = min(len(paths), keep // prod(shape))
        self._kept = np.empty((room, *shape), dtype=np.uint8)  # a page takes memory when an image is written into it
        self._place = np.full(len(paths), -1)  # of each image among the kept ones
        self._count = 0
        self._lock = threading.Lock()

    def __call__(self, rows: np.ndarray) -> Tensor:
        """The images of these files, `(n, channels, height, width)` bytes."""
        out = np.empty((len(rows), *self.shape), dtype=np.uint8)
        with self._lock, warnings.catch_warnings(action="ignore"):  # here, because it is not safe inside threads
            place = self._place[rows]
            known, missing = np.flatnonzero(place >= 0), np.flatnonzero(place < 0)
            out[known] = self._kept[place[known]]
            for i in self._decode(rows, missing, out):
                self._keep(rows[i], out[i])
        return torch.from_numpy(out)

    def _decode(self, rows: np.ndarray, which: np.ndarray, out: np.ndarray) -> Iterator[int]:
        """Decode the images of some of the rows into `out`; yields the position of each when it is done."""

        def decode(i: int) -> int:
            path = self.paths[rows[i]]
            image = self.read(path)
            if image.shape != self.shape:
                raise UserError(f"{path}: has changed: its shape was {self.shape}, now it is {image.shape}")
            out[i] = image
            return i

        threads = min(torch.get_num_threads(), len(which))
        if threads < 2:
            yield from map(decode, which.tolist())
            return
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(decode, which.tolist())

    def _keep(self, row: int, image: np.ndarray) -> None:
        if self._place[row] < 0 and self._count < len(self._kept):
            self._kept[self._count], self._place[row] = image, self._count
            self._count += 1


class ImageFiles(Tensor):
    """Images as a tensor of bytes, `(n, channels, height, width)`, that are decoded when they are used.

    Args:
        decoder: Decodes the images of the folder.
        rows: Which of the decoder's files these are.
    """

    decoder: Decoder
    rows: np.ndarray

    def __new__(cls, decoder: Decoder, rows: np.ndarray) -> "ImageFiles":
        shape = (len(rows), *decoder.shape)
        files: ImageFiles = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.uint8)
        files.decoder, files.rows = decoder, rows
        return files

    def __repr__(self) -> str:  # type: ignore[override]
        return f"<ImageFiles: {len(self.rows):,} images of shape {self.decoder.shape}>"

    def decoded(self) -> Tensor:
        """The images as an ordinary tensor."""
        return self.decoder(self.rows)

    def blocks(self, multiple: int = 1, description: str = "decoding images") -> Iterator[Tensor]:
        """All images, decoded block by block, with progress; the sizes of all blocks but the last are a multiple."""
        size = max(1, _BLOCK // prod(self.decoder.shape) // multiple) * multiple
        blocks = (self.decoder(self.rows[i : i + size]) for i in range(0, len(self.rows), size))
        return with_progress(blocks, description, len(self.rows), len)

    def __getitem__(self, index: Any) -> Tensor:  # noqa: ANN401
        if isinstance(index, slice):
            return ImageFiles(self.decoder, self.rows[index])
        if isinstance(index, Tensor) and index.ndim == 1:
            return ImageFiles(self.decoder, self.rows[index.numpy()])
        if isinstance(index, int):
            return self.decoder(self.rows[[index]])[0]
        return self.decoded()[index]

    def index_select(self, dim: int, index: Tensor) -> Tensor:
        return self.decoder(self.rows[index.numpy()]) if dim == 0 else self.decoded().index_select(dim, index)

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls,
        function: Any,  # noqa: ANN401
        types: Any,  # noqa: ANN401
        args: Any = (),  # noqa: ANN401
        kwargs: Any = None,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        args, kwargs = tree_map_only(ImageFiles, ImageFiles.decoded, (args, kwargs or {}))
        return function(*args, **kwargs)


def with_progress(
    items: Iterable[T], description: str, total: int, samples: Callable[[T], int] = lambda _: 1
) -> Iterator[T]:
    """Show on stderr how many of `total` images are done, if it is a terminal and they are many.

    Args:
        items: What is done one after the other.
        description: What is being done.
        total: The number of images.
        samples: The number of images of an item.
    """
    if total < _MANY or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=total)
        for item in items:
            yield item
            progress.advance(task, samples(item))
