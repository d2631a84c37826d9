"""A folder of images with one sub-folder per class, perhaps one level below `train`, `valid` and `test`."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from verydeep.data.own._image_files import Decoder, ImageFiles, with_progress
from verydeep.data.own._raw_split import RawSplit, match_split_names
from verydeep.errors import UserError, shorten
from verydeep.files import require_regular

if TYPE_CHECKING:
    from PIL.Image import Image

# Only formats that Pillow decodes by itself: for others, such as EPS, it starts programs, whatever the suffix is.
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
LARGEST = 64 * 2**20  # pixels of an image
IN_MEMORY = 2 * 2**30  # bytes of prepared images up to which a folder is decoded at once; larger ones batch by batch
KEPT = 2**30  # bytes of decoded images of such a larger folder that stay in memory
_ORIENTATION = 0x0112  # the EXIF tag that says how the camera was held


def read_image_folder(folder: Path, size: int | None, channels: int | None) -> dict[str, RawSplit]:
    """Read the splits of the folder; one without a `train` folder is all `train`.

    Images that would take more than `IN_MEMORY` once prepared stay in their files and are decoded when they are used.
    """
    files = {split: _image_files(path) for split, path in _split_folders(folder).items()}
    paths = [path for inside in files.values() for path in inside]
    with warnings.catch_warnings(action="ignore"):
        seen = with_progress(paths, f"looking at {folder.name}", len(paths))
        shapes = [_shape_of(path, size) for path in seen]
    _check_same_size(paths, shapes)
    shape = (channels or max(shapes)[0], *shapes[0][1:])
    in_memory = len(paths) * prod(shape) * torch.float32.itemsize <= IN_MEMORY
    read = partial(read_image_as, size=size, channels=shape[0])
    decoder = Decoder(paths, shape, read, keep=0 if in_memory else KEPT)
    splits, first = {}, 0
    for split, inside in files.items():
        images = ImageFiles(decoder, np.arange(first, first + len(inside)))
        x = torch.cat(list(images.blocks())) if in_memory else images
        classes = np.array([path.parent.name for path in inside], dtype=object)
        splits[split] = RawSplit(x, {"class": classes}, partial(_place, inside))
        first += len(inside)
    return splits


def read_image(path: Path, size: int | tuple[int, int] | None = None) -> np.ndarray:
    """Read one image as `(1 or 3, height, width)` bytes, upright and with transparency blended into white.

    Args:
        path: The file.
        size: Resize to this height and width; one number is both. By default the image keeps its size.
    """
    with warnings.catch_warnings(action="ignore"):
        return _decode(path, size)


def read_image_as(path: Path, size: int | tuple[int, int] | None, channels: int) -> np.ndarray:
    """Read one image like `read_image`, with this number of channels; threads may call it, with warnings silenced."""
    return with_channels(_decode(path, size), channels)


def _decode(path: Path, size: int | tuple[int, int] | None) -> np.ndarray:
    from PIL import Image, ImageOps

    with _opened(path) as file:
        image = ImageOps.exif_transpose(file)
        mode = _mode(image)
        if image.has_transparency_data:  # a transparent pixel may have any colour, often that of the shape itself
            image = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
        image = image.convert(mode)
        if size is not None:
            height, width = (size, size) if isinstance(size, int) else size
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        pixels = np.array(image)
    return pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0)


def _shape_of(path: Path, size: int | None) -> tuple[int, int, int]:
    """The shape that `_decode` will give, from the header of the file alone."""
    with _opened(path) as image:
        channels = 1 if _mode(image) == "L" else 3
        if size is not None:
            return channels, size, size
        sideways = image.getexif().get(_ORIENTATION) in (5, 6, 7, 8)
        width, height = reversed(image.size) if sideways else image.size
        return channels, height, width


def _mode(image: "Image") -> Literal["L", "RGB"]:
    if image.mode.startswith(("I", "F")):
        raise ValueError(f"mode {image.mode} has more than 8 bits; save it with 8")
    return "L" if image.mode in ("1", "L", "LA") else "RGB"


@contextmanager
def _opened(path: Path) -> Iterator["Image"]:
    """Open an image; errors in the body become a `UserError` that names the file."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(require_regular(path), formats=FORMATS) as file:
            if prod(file.size) > LARGEST:  # before it is decoded: a file of some kilobytes may declare gigabytes
                width, height = file.size
                raise UserError(
                    f"{path}: has {width:,} x {height:,} pixels, and an image may have {LARGEST:,}; save it smaller"
                )
            yield file
    except UserError:
        raise
    except UnidentifiedImageError:
        formats = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        raise UserError(f"{path}: cannot be read as an image: its content is not {formats}") from None
    except Exception as error:  # a broken file makes Pillow's readers raise many kinds of exceptions
        raise UserError(f"{path}: cannot be read as an image: {shorten(error)}") from None


def with_channels(image: np.ndarray, channels: int) -> np.ndarray:
    """Repeat grey as colour, or convert colour to grey with Pillow's weights."""
    if image.shape[0] == channels:
        return image
    if channels == 3:
        return image.repeat(3, axis=0)
    grey = np.tensordot(np.array([0.299, 0.587, 0.114]), image, axes=1)
    return grey.round().astype(np.uint8)[None]


def _split_folders(folder: Path) -> dict[str, Path]:
    names = [path.name for path in _folders(folder)]
    # a folder called train with images inside is a class
    if not any(name.lower() == "train" and _folders(folder / name) for name in names):
        return {"train": folder}
    return {split: folder / name for split, name in match_split_names(names, folder).items()}


def _folders(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))


def _image_files(folder: Path) -> list[Path]:
    """Every image of every class, in a fixed order."""
    files: list[Path] = []
    for class_folder in _folders(folder):
        if not _is_utf8(class_folder.name):
            raise UserError(
                f"{folder}: the class {class_folder.name!r} has a name that is not UTF-8; rename the folder"
            )
        inside = sorted(p for p in class_folder.iterdir() if p.suffix.lower() in SUFFIXES and p.name[0] != ".")
        if not inside:
            raise UserError(f"{class_folder}: no images; each folder is a class and needs some ({', '.join(SUFFIXES)})")
        files += inside
    if not files:
        raise UserError(
            f"{folder}: no images; expected one folder of images per class (or train, valid, test with such folders)"
        )
    return files


def _is_utf8(name: str) -> bool:
    """Whether a name is UTF-8 on disk; Python represents other bytes as surrogates, which cannot be encoded."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_same_size(paths: list[Path], shapes: list[tuple[int, int, int]]) -> None:
    for path, shape in zip(paths, shapes, strict=True):
        if shape[1:] != shapes[0][1:]:
            raise UserError(
                f"{path} is {_size(shape)} pixels, {paths[0]} is {_size(shapes[0])}; "
                "all images must have the same size, or set data.image_size to resize them"
            )


def _size(shape: tuple[int, int, int]) -> str:
    return f"{shape[2]}x{shape[1]}"


def _place(files: list[Path], row: int, column: str) -> str:
    return str(files[row])
