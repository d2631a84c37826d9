"""The picture at the top of the README: `python benchmarks/screenshot.py runs/depth-mnist/depth.html`.

Shows the beginning of the page that `verydeep depth` wrote, and saves it as docs/images/depth.png. Needs chromium or
Chrome.
"""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from verydeep.files import write_atomic

OUT = Path(__file__).parents[1] / "docs" / "images" / "depth.png"
WIDTH, MARGIN = 1100, 20


def main() -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None or len(sys.argv) != 2:
        sys.exit("screenshot: give the page of verydeep depth; chromium or Chrome must be installed")
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=browser).new_page(viewport={"width": WIDTH, "height": 900})
        page.goto(Path(sys.argv[1]).resolve().as_uri())
        page.add_style_tag(content=".readout, .tools { display: none }")
        parts = [page.locator(name).first for name in ("header", ".answer")]
        pictures = [Image.open(io.BytesIO(part.screenshot())).convert("RGB") for part in parts]
    height = sum(picture.height + MARGIN for picture in pictures) + MARGIN
    sheet, top = Image.new("RGB", (WIDTH, height), "white"), MARGIN
    for picture in pictures:
        sheet.paste(picture, ((WIDTH - picture.width) // 2, top))
        top += picture.height + MARGIN
    write_atomic(OUT, lambda path: sheet.save(path, "PNG", optimize=True))


if __name__ == "__main__":
    main()
