"""A folder of images with one sub-folder per class, perhaps one level below `train`, `valid` and `test`."""

import warnings
from pathlib import Path

import numpy as np
import torch

from verydeep.data.own._raw_split import RawSplit, match_split_names
from verydeep.errors import UserError, shorten

# Only formats that Pillow decodes by itself: for others, such as EPS, it starts programs, whatever the suffix is.
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")


def read_image_folder(folder: Path, size: int | None, channels: int | None) -> dict[str, RawSplit]:
    """Read the splits of the folder; one without a `train` folder is all `train`."""
    files = {split: _image_files(path) for split, path in _split_folders(folder).items()}
    images = {split: [read_image(path, size) for path in paths] for split, paths in files.items()}
    pairs = [(path, image) for split in files for path, image in zip(files[split], images[split], strict=True)]
    _check_same_size(pairs)
    channels = channels or max(image.shape[0] for _, image in pairs)
    return {split: _stack(files[split], images[split], channels) for split in files}


def read_image(path: Path, size: int | tuple[int, int] | None = None) -> np.ndarray:
    """Read one image as `(1 or 3, height, width)` bytes, upright and with transparency blended into white.

    Args:
        path: The file.
        size: Resize to this height and width; one number is both. By default the image keeps its size.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with warnings.catch_warnings(action="ignore"), Image.open(path, formats=FORMATS) as file:
            image = ImageOps.exif_transpose(file)
            if image.mode.startswith(("I", "F")):
                raise ValueError(f"mode {image.mode} has more than 8 bits; save it with 8")
            mode = "L" if image.mode in ("1", "L", "LA") else "RGB"
            if image.has_transparency_data:  # a transparent pixel may have any colour, often that of the shape itself
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
    except Exception as error:  # a broken file makes Pillow's readers raise many kinds of exceptions
        raise UserError(f"{path}: cannot be read as an image: {shorten(error)}") from None
    return pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0)


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


def _check_same_size(images: list[tuple[Path, np.ndarray]]) -> None:
    (first, image), *_ = images
    for path, other in images:
        if other.shape[1:] != image.shape[1:]:
            raise UserError(
                f"{path} is {_size(other)} pixels, {first} is {_size(image)}; "
                "all images must have the same size, or set data.image_size to resize them"
            )


def _size(image: np.ndarray) -> str:
    return f"{image.shape[2]}x{image.shape[1]}"


def _stack(files: list[Path], images: list[np.ndarray], channels: int) -> RawSplit:
    x = np.empty((len(images), channels, *images[0].shape[1:]), dtype=np.uint8)
    for row, image in zip(x, images, strict=True):
        row[:] = with_channels(image, channels)
    labels = np.array([path.parent.name for path in files], dtype=object)
    return RawSplit(torch.from_numpy(x), {"class": labels}, lambda i, _name: str(files[i]))
