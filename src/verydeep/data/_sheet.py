"""A contact sheet: a row of samples for every class, to see at a glance that a set is what it says."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from verydeep.data._dataset import Dataset, Split
from verydeep.errors import UserError
from verydeep.files import write_atomic

_TILE = 64  # pixels an image may fill, enlarged by a whole factor
_GAP = 4
_ROWS = 25  # classes below each other before a new column starts
_MOST = 100
_FONT = 18
_PAPER, _INK = (255, 255, 255), (30, 30, 30)


def contact_sheet(dataset: Dataset, samples: int = 10) -> Image.Image:
    """The first training samples of every class, labelled; many classes go into several columns."""
    if not 1 <= samples <= _MOST:
        raise UserError(f"samples: {samples} for each class cannot be drawn; choose 1 to {_MOST}")
    pictures = _enlarge(dataset.train, [_first(dataset.train, c, samples) for c in range(len(dataset.classes))])
    font = ImageFont.load_default(_FONT)
    label = max(int(font.getlength(name)) for name in dataset.classes) + 4 * _GAP
    height, width = pictures[0][0].height + _GAP, pictures[0][0].width + _GAP
    column = label + samples * width + 4 * _GAP
    rows, columns = min(_ROWS, len(pictures)), -(-len(pictures) // _ROWS)
    sheet = Image.new("RGB", (columns * column, rows * height + _GAP), _PAPER)
    draw = ImageDraw.Draw(sheet)
    for number, (name, row) in enumerate(zip(dataset.classes, pictures, strict=True)):
        left, top = number // _ROWS * column, number % _ROWS * height + _GAP
        draw.text((left + label - 2 * _GAP, top + height // 2), name, _INK, font, anchor="rm")
        for position, picture in enumerate(row):
            sheet.paste(picture, (left + label + position * width, top))
    return sheet


def save_sheet(sheet: Image.Image, path: Path) -> None:
    """Write the sheet as PNG, whole or not at all."""
    encoded = io.BytesIO()
    sheet.save(encoded, format="PNG")
    write_atomic(path, encoded.getvalue())


def _first(split: Split, c: int, samples: int) -> torch.Tensor:
    return torch.nonzero(split.y == c).flatten()[:samples]


def _enlarge(split: Split, chosen: list[torch.Tensor]) -> list[list[Image.Image]]:
    brightest = max(int(split.x.max()), 1)  # digits go to 16, photographs to 255
    factor = max(1, _TILE // split.x.shape[-1])
    return [[_picture(x, brightest, factor) for x in _images(split.x[rows])] for rows in chosen]


def _images(x: torch.Tensor) -> Iterator[NDArray[np.uint8]]:
    for image in x:  # (channel, height, width); grey becomes three equal channels
        yield image.expand(3, -1, -1).permute(1, 2, 0).numpy()


def _picture(pixels: NDArray[np.uint8], brightest: int, factor: int) -> Image.Image:
    scaled = (pixels.astype(np.uint16) * 255 // brightest).astype(np.uint8)
    picture = Image.fromarray(scaled)
    return picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)
