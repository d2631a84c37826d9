from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from verydeep.data import Dataset, Split, contact_sheet, save_contact_sheet
from verydeep.errors import UserError


def dataset(classes: int, channels: int = 3, top: int = 255) -> Dataset:
    y = torch.arange(classes).repeat_interleave(4)
    x = torch.full((len(y), channels, 16, 16), top, dtype=torch.uint8) * (y % 2 == 0)[:, None, None, None]
    split = Split(x.to(torch.uint8), y)
    return Dataset("made", split, None, split, tuple(f"class {c}" for c in range(classes)))


@pytest.mark.parametrize(("channels", "top"), [(3, 255), (1, 255), (1, 16)])
def test_every_class_has_a_row_of_its_samples(channels: int, top: int) -> None:
    sheet = np.asarray(contact_sheet(dataset(4, channels, top), samples=3))
    rows = np.array_split(sheet[2:-2], 4)
    dark = [bool((row[:, -90:-30] < 10).mean() > 0.5) for row in rows]
    assert dark == [False, True, False, True]


def test_rows_are_labelled() -> None:
    sheet = np.asarray(contact_sheet(dataset(1), samples=1))
    assert (sheet[:, :60] < 100).any()


def test_many_classes_fill_several_columns() -> None:
    sheet = contact_sheet(dataset(100), samples=2)
    assert sheet.height == contact_sheet(dataset(25), samples=2).height
    assert sheet.width > 3 * contact_sheet(dataset(25), samples=2).width


@pytest.mark.parametrize("samples", [0, -1, 101])
def test_an_impossible_number_of_samples_is_refused(samples: int) -> None:
    with pytest.raises(UserError, match=f"samples: {samples} "):
        contact_sheet(dataset(2), samples)


def test_a_sheet_is_written_as_png_whatever_its_name_and_replaces_an_older_one(tmp_path: Path) -> None:
    for _ in range(2):
        save_contact_sheet(contact_sheet(dataset(2)), tmp_path / "new" / "sheet.any")
    with Image.open(tmp_path / "new" / "sheet.any") as picture:
        assert picture.format == "PNG"


def test_a_sheet_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a regular file"):
        save_contact_sheet(contact_sheet(dataset(2)), tmp_path)
