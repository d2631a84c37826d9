"""Datasets and splits describe themselves in one line, and show a table and images in a notebook."""

import base64
import io
import re
from dataclasses import replace

import pytest
import torch
from PIL import Image

from verydeep.data import Dataset, Split, contact_sheet, load_dataset
from verydeep.errors import UserError


def table(classes: int = 3) -> Dataset:
    train, test = (Split(torch.randn(n, 5), torch.arange(n) % classes) for n in (60, 30))
    return Dataset("<flowers>", train, None, test, tuple(f"class {c}" for c in range(classes)))


def pictures(page: str) -> list[Image.Image]:
    encoded = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    return [Image.open(io.BytesIO(base64.b64decode(picture))) for picture in encoded]


def test_one_line_says_name_sizes_shape_and_classes() -> None:
    data = table()
    assert repr(data) == "<Dataset '<flowers>': 60 training and 30 test samples of shape (5,), 3 classes>"
    with_valid = replace(data, valid=data.test)
    assert "60 training, 30 validation and 30 test samples" in repr(with_valid)
    assert repr(data.test) == "<Split: 30 samples of shape (5,)>"
    assert repr(Split(data.test.x[:1], data.test.y[:1])) == "<Split: 1 sample of shape (5,)>"


def test_notebooks_show_a_table_and_images_of_prepared_data() -> None:
    page = table(20)._repr_html_()
    assert "&lt;flowers&gt;" in page
    assert "class 9, ..." in page
    assert pictures(page) == []
    (sheet,) = pictures(load_dataset("digits")._repr_html_())
    assert max(sheet.size) <= 800
    low, high = sheet.convert("L").crop((60, 0, *sheet.size)).getextrema()
    assert (low, high) == (0, 255)  # prepared values are no longer bytes


def test_a_split_shows_its_images_by_class_number_even_if_a_class_has_none() -> None:
    digits = load_dataset("digits").test
    without_0 = Split(digits.x[digits.y > 0], digits.y[digits.y > 0])
    (all_classes,), (fewer,) = pictures(digits._repr_html_()), pictures(without_0._repr_html_())
    assert all_classes.size == fewer.size
    assert pictures(table().test._repr_html_()) == []
    assert pictures(Split(digits.x[:0], digits.y[:0])._repr_html_()) == []


def test_only_images_have_a_contact_sheet() -> None:
    with pytest.raises(UserError, match=r"only images can be drawn, but its samples have shape \(5,\)"):
        contact_sheet(table())
