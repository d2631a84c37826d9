"""The page prepares raw values as Python does, and brings drawings and images into the form of the training images."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from playwright.sync_api import Page

from verydeep.data import fit_arrays
from verydeep.data.own._image_folder import read_image_as
from verydeep.report.explore._inputs import describe_inputs
from verydeep.training import RunData, load_own_with_raw

from ._explored import table_run
from .test_browser import browser, needs_chromium

pytestmark = [pytest.mark.slow, needs_chromium]
__all__ = ["browser"]  # a fixture
SAMPLES = """([inputs, count]) => {
  const preparation = new Preparation(inputs);
  return [...Array(count).keys()].map((number) => [...preparation.sample(number, count)]);
}"""


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Page]:
    found: Page = browser.new_page()
    folder = files("verydeep.report.explore").joinpath("page")
    for name, public in (("prepare.js", "Preparation, fromHalf"), ("images.js", "fromPhotograph, placeInk")):
        script = folder.joinpath(name).read_text("utf-8")
        found.add_script_tag(content=f"{script}\nObject.assign(window, {{ {public} }});")
    yield found
    found.close()


SHAPES = ((1, 6, 5), (3, 6, 5), (7,))
EVERY = [(how, shape) for how in ("scale", "contrast", "standardise", "none", "zca") for shape in SHAPES]


@pytest.mark.parametrize(("preprocess", "shape"), [*EVERY, ("imagenet", (3, 6, 5))])
def test_arrays(page: Page, preprocess: Any, shape: tuple[int, ...]) -> None:
    raw = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (20, *shape), dtype=np.uint8))
    norm = 55.0 if preprocess == "contrast" else None
    preparation = fit_arrays(raw, preprocess, contrast_norm=norm)
    expected = preparation(raw).float()
    described = describe_inputs(preparation, raw, expected, raw)
    found = np.array(page.evaluate(SAMPLES, [described, len(raw)]))
    assert np.abs(found - expected.flatten(1).numpy()).max() < 1e-5
    assert ("refused" in described) == (preprocess == "zca" or (preprocess == "contrast" and shape == (7,)))


def test_rows_of_a_table(page: Page, tmp_path: Path) -> None:
    run = table_run(tmp_path)
    dataset, raw = load_own_with_raw(run)
    preparation = RunData.load(run).preparation
    described = describe_inputs(preparation, raw["test"].x, dataset.test.x, raw["test"].x)
    kinds = {column["name"]: column["kind"] for column in described["columns"]}
    assert set(kinds.values()) == {"number", "category", "boolean", "date"}
    found = np.array(page.evaluate(SAMPLES, [described, len(dataset.test)]))
    assert np.abs(found - dataset.test.x.numpy()).max() < 1e-5


def test_halves(page: Page) -> None:
    values = np.array([0, 1, -2.5, 6e-8, 65504, 0.1, -1e-5], dtype=np.float16)
    found = page.evaluate("(bits) => [...fromHalf(bits)]", values.view(np.uint16).tolist())
    assert found == values.astype(np.float64).tolist()


@pytest.mark.parametrize("channels", [1, 3])
def test_images_are_resized_as_predict_does(page: Page, tmp_path: Path, channels: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (37, 52, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "image.png")
    expected = read_image_as(tmp_path / "image.png", (11, 14), channels).astype(int)
    rgba = np.concatenate([pixels, np.full((37, 52, 1), 255, dtype=np.uint8)], axis=2)
    inputs = {"shape": [channels, 11, 14], "black": 0, "white": 255, "bytes": True}
    script = "([rgba, size, inputs]) => [...fromPhotograph(rgba, size, inputs, false)]"
    found = np.array(page.evaluate(script, [rgba.ravel().tolist(), [37, 52], inputs]))
    assert np.abs(found - expected.ravel()).max() <= 1


def test_drawings_are_placed_like_the_training_images(page: Page) -> None:
    ink = np.zeros((60, 60))
    ink[5:15, 40:45] = 1  # small, and in a corner
    inputs = {"shape": [1, 28, 28], "black": 0, "white": 255, "bytes": True}
    inputs["ink"] = {"dark": False, "size": 20 / 28, "centre": [0.5, 0.5]}
    script = "([ink, inputs]) => [...placeInk(ink, 60, inputs)]"
    found = np.array(page.evaluate(script, [ink.ravel().tolist(), inputs])).reshape(28, 28)
    rows, columns = np.flatnonzero(found.any(1)), np.flatnonzero(found.any(0))
    assert (rows[0], rows[-1]) == (4, 23)
    assert (columns[0], columns[-1]) == (9, 18)
    assert found.max() == 255
