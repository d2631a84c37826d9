"""A folder of images, one sub-folder for each class; perhaps one level below `train`, `valid` and `test`."""

import warnings
from pathlib import Path

import numpy as np
import torch

from verydeep.data._labels import Labelled
from verydeep.data._messages import shortened
from verydeep.data._roles import by_role
from verydeep.errors import UserError

# Only what Pillow decodes by itself: for others, such as EPS, it starts programs, whatever the file's suffix is.
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")


def read_images(folder: Path, size: int | None, channels: int | None) -> dict[str, Labelled]:
    """Its splits; a folder without `train` inside is all `train`."""
    files = {role: _files(path) for role, path in _split_folders(folder).items()}
    images = {role: [read_image(path, size) for path in paths] for role, paths in files.items()}
    every = [(path, image) for role in files for path, image in zip(files[role], images[role], strict=True)]
    _check_one_size(every)
    channels = channels or max(image.shape[0] for _, image in every)
    return {role: _part(files[role], images[role], channels) for role in files}


def read_image(path: Path, size: int | tuple[int, int] | None = None) -> np.ndarray:
    """One image as `(1 or 3, height, width)` bytes, upright, on white, resized to `size` (both, or height, width)."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with warnings.catch_warnings(action="ignore"), Image.open(path, formats=FORMATS) as file:
            image = ImageOps.exif_transpose(file)
            if image.mode.startswith(("I", "F")):
                raise ValueError(f"mode {image.mode} has more than 8 bits; save it with 8")
            mode = "L" if image.mode in ("1", "L", "LA") else "RGB"
            if image.has_transparency_data:  # whose colour below may be anything, often that of the shape itself
                image = image.convert("RGBA")
                image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
            image = image.convert(mode)
            if size is not None:
                height, width = (size, size) if isinstance(size, int) else size
                image = image.resize((width, height), Image.Resampling.BILINEAR)
            pixels = np.array(image)
    except UnidentifiedImageError:
        formats = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        raise UserError(f"{path}: cannot be read as an image: its content is not {formats}") from None
    except Exception as error:  # whatever Pillow's many readers make of a broken file
        raise UserError(f"{path}: cannot be read as an image: {shortened(error)}") from None
    return pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0)


def with_channels(image: np.ndarray, channels: int) -> np.ndarray:
    """Grey repeated as colour, or colour weighed to grey as Pillow does."""
    if image.shape[0] == channels:
        return image
    if channels == 3:
        return image.repeat(3, axis=0)
    weighed = np.tensordot(np.array([0.299, 0.587, 0.114]), image, axes=1)
    return weighed.round().astype(np.uint8)[None]


def _split_folders(folder: Path) -> dict[str, Path]:
    names = [path.name for path in _folders(folder)]
    if not any(name.lower() == "train" and _folders(folder / name) for name in names):  # a class may be called train
        return {"train": folder}
    return {role: folder / name for role, name in by_role(names, folder).items()}


def _folders(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))


def _files(folder: Path) -> list[Path]:
    """Every image of every class, in a fixed order."""
    files: list[Path] = []
    for class_folder in _folders(folder):
        if not _is_text(class_folder.name):
            raise UserError(
                f"{folder}: the class {class_folder.name!r} has a name that is not UTF-8; rename the folder"
            )
        inside = sorted(p for p in class_folder.iterdir() if p.suffix.lower() in SUFFIXES and p.name[0] != ".")
        if not inside:
            raise UserError(f"{class_folder}: no images; each folder is a class and needs some ({', '.join(SUFFIXES)})")
        files += inside
    if not files:
        raise UserError(
            f"{folder}: no images; expected a folder of them for each class (or train, valid, test with such)"
        )
    return files


def _is_text(name: str) -> bool:
    """Whether a name is UTF-8 on disk; Python keeps the bytes of others as halves of characters."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_one_size(every: list[tuple[Path, np.ndarray]]) -> None:
    (first, image), *_ = every
    for path, other in every:
        if other.shape[1:] != image.shape[1:]:
            raise UserError(
                f"{path} is {_size(other)} pixels, {first} is {_size(image)}; "
                "images must be of one size, or give image_size to resize them"
            )


def _size(image: np.ndarray) -> str:
    return f"{image.shape[2]}x{image.shape[1]}"


def _part(files: list[Path], images: list[np.ndarray], channels: int) -> Labelled:
    x = np.empty((len(images), channels, *images[0].shape[1:]), dtype=np.uint8)
    for row, image in zip(x, images, strict=True):
        row[:] = with_channels(image, channels)
    labels = np.array([path.parent.name for path in files], dtype=object)
    return Labelled(torch.from_numpy(x), labels, lambda i: str(files[i]))
