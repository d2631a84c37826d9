"""A contact sheet: one row of samples per class, to see at a glance what a dataset holds."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from verydeep.data._dataset import Dataset, Split
from verydeep.errors import UserError
from verydeep.files import write_atomic

if TYPE_CHECKING:  # Pillow is imported when a sheet is drawn
    from PIL.Image import Image

_TILE = 64  # pixels; images are enlarged by a whole factor up to this width
_GAP = 4
_ROWS = 25  # classes per column
_MAX_SAMPLES = 100
_FONT = 18
_BACKGROUND, _TEXT = (255, 255, 255), (30, 30, 30)


def contact_sheet(dataset: Dataset, samples: int = 10) -> "Image":
    """Draw the first training samples of each class, one labelled row per class, in as many columns as needed.

    Args:
        dataset: A dataset of images, raw or prepared.
        samples: How many samples of each class to draw.

    Returns:
        An image of Pillow, which notebooks show.

    Example:
        >>> from verydeep.data import contact_sheet, load_dataset
        >>> contact_sheet(load_dataset("digits"), samples=5).save("digits.png")
    """
    from PIL import Image, ImageDraw, ImageFont

    if dataset.train.x.ndim != 4 or dataset.train.x.shape[1] not in (1, 3):
        shape = tuple(dataset.train.x.shape[1:])
        raise UserError(f"{dataset.name}: only images can be drawn, but its samples have shape {shape}")
    if not 1 <= samples <= _MAX_SAMPLES:
        raise UserError(f"samples: {samples} per class cannot be drawn; choose 1 to {_MAX_SAMPLES}")
    tiles = _tiles(dataset.train, [_first(dataset.train, c, samples) for c in range(len(dataset.classes))])
    font = ImageFont.load_default(_FONT)
    label = max(int(font.getlength(name)) for name in dataset.classes) + 4 * _GAP
    height, width = (_factor(dataset.train.x) * side + _GAP for side in dataset.train.x.shape[2:])
    column = label + samples * width + 4 * _GAP
    rows, columns = min(_ROWS, len(tiles)), -(-len(tiles) // _ROWS)
    sheet = Image.new("RGB", (columns * column, rows * height + _GAP), _BACKGROUND)
    draw = ImageDraw.Draw(sheet)
    for number, (name, row) in enumerate(zip(dataset.classes, tiles, strict=True)):
        left, top = number // _ROWS * column, number % _ROWS * height + _GAP
        draw.text((left + label - 2 * _GAP, top + height // 2), name, _TEXT, font, anchor="rm")
        for position, tile in enumerate(row):
            sheet.paste(tile, (left + label + position * width, top))
    return sheet


def save_contact_sheet(sheet: "Image", path: Path) -> None:
    """Write the sheet as PNG, atomically."""
    encoded = io.BytesIO()
    sheet.save(encoded, format="PNG")
    write_atomic(path, encoded.getvalue())


def _first(split: Split, c: int, samples: int) -> torch.Tensor:
    return torch.nonzero(split.y == c).flatten()[:samples]


def _tiles(split: Split, chosen: list[torch.Tensor]) -> list[list["Image"]]:
    x = split.x[torch.cat(chosen)].cpu()
    if not len(x):  # none of these classes has samples
        return [[] for _ in chosen]
    # digits have values up to 16, photographs up to 255, and prepared images others
    low, high = (0.0, max(float(x.max()), 1.0)) if x.dtype == torch.uint8 else (float(x.min()), float(x.max()))
    pixels = ((x.double() - low) / (high - low or 1) * 255).to(torch.uint8)
    factor = _factor(x)
    return [[_tile(image, factor) for image in images] for images in pixels.split([len(rows) for rows in chosen])]


def _factor(x: torch.Tensor) -> int:
    return max(1, _TILE // x.shape[-1])


def _tile(image: torch.Tensor, factor: int) -> "Image":
    from PIL import Image

    # (channel, height, width); grey becomes three equal channels
    tile = Image.fromarray(image.expand(3, -1, -1).permute(1, 2, 0).numpy())
    return tile.resize((tile.width * factor, tile.height * factor), Image.Resampling.NEAREST)
