"""The picture of the interactive page: `python benchmarks/explore_picture.py explore.html`.

Draws a digit into the page that `verydeep explore pretrained:highway50-mnist` wrote, closes some layers, and saves what
one sees as docs/images/explore.png. Needs chromium or Chrome.
"""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import expect, sync_playwright

from verydeep.files import write_atomic

OUT = Path(__file__).parents[1] / "docs" / "images" / "explore.png"
SIZE = {"width": 1360, "height": 1010}
DIGIT = [
    *((0.32, 0.24), (0.5, 0.16), (0.66, 0.26), (0.62, 0.42), (0.46, 0.49)),
    *((0.66, 0.58), (0.68, 0.76), (0.5, 0.85), (0.3, 0.77)),
]


def main() -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None or len(sys.argv) != 2:
        sys.exit("explore_picture: give the page of verydeep explore; chromium or Chrome must be installed")
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=browser).new_page(viewport=SIZE)  # type: ignore[arg-type]
        page.emulate_media(reduced_motion="reduce")
        page.goto(Path(sys.argv[1]).resolve().as_uri())
        page.locator("#invite [data-do=dismiss]").click()
        page.locator("#tab-draw").click()
        box = page.locator(".pad canvas").bounding_box()
        assert box is not None
        places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in DIGIT]
        page.mouse.move(*places[0])
        page.mouse.down()
        for place in places[1:]:
            page.mouse.move(*place, steps=5)
        page.mouse.up()
        page.locator("#keep").fill("24")
        expect(page.locator("#score .text")).to_contain_text("24 of 49", timeout=60_000)
        page.mouse.move(0, 0)
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    write_atomic(OUT, lambda path: picture.save(path, "PNG", optimize=True))


if __name__ == "__main__":
    main()
