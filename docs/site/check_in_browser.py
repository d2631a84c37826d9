"""The built site in a browser, opened from disk: `make docs` runs this after the build."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

SITE = Path(os.environ.get("SITE", Path(__file__).parents[2] / "build" / "site"))
PAGES = sorted(path for path in SITE.rglob("*.html") if not {"live", "depth"} & set(path.relative_to(SITE).parts[:-1]))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no chromium or Chrome here")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        yield browser
        browser.close()


def watched(page: Page) -> list[str]:
    """The errors of a page, collected while it is used."""
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("requestfailed", lambda request: errors.append(f"failed: {request.url}"))
    return errors


def test_no_page_has_errors_or_is_wider_than_a_phone(browser: Browser) -> None:
    assert len(PAGES) > 60
    page = browser.new_page(viewport={"width": 390, "height": 800})
    errors = watched(page)
    for path in PAGES:
        page.goto(path.as_uri())
        width = page.evaluate("document.documentElement.scrollWidth")
        assert errors == [], path.relative_to(SITE)
        assert width <= 390, f"{path.relative_to(SITE)} is {width} pixels wide"


def test_the_search_finds_a_function(browser: Browser) -> None:
    page = browser.new_page()
    errors = watched(page)
    page.goto((SITE / "index.html").as_uri())
    page.fill("input[name=q]", "suggest_gate_bias")
    page.keyboard.press("Enter")
    page.wait_for_selector("ul.search li a")
    found = page.locator("ul.search li a").evaluate_all("links => links.map(link => link.href)")
    assert any("reference/api/nn.html" in link for link in found)
    assert any("layers.html" in link for link in found)
    page.goto(next(link for link in found if "reference/api/nn.html" in link))
    assert "suggest_gate_bias" in page.inner_text("article")
    assert errors == []


def test_the_reference_names_no_private_file(browser: Browser) -> None:
    page = browser.new_page()
    for path in sorted((SITE / "reference" / "api").glob("*.html")):
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('article pre, .default_value').forEach(code => code.remove())")
        shown = page.inner_text("article")
        assert re.findall(r"(?<![\w`])(?:verydeep[\w.]*\.)?_[a-z]\w+", shown) == [], path.name
