"""Pages are short, and the site shows every one of them."""

import re
import tomllib
from pathlib import Path

import pytest

from ._pages import DOCS, PAGES, ROOT, words

CONTENTS = tomllib.loads((DOCS / "site" / "contents.toml").read_text())["part"]
SHOWN = {re.sub(r"^.* <(.*)>$", r"\1", page) for part in CONTENTS for page in part["pages"]}
GENERATED = {"reference/commands", "reference/api"}
EXPLORE = ROOT / "src/verydeep/report/explore/page"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_at_most_1200_words(page: Path) -> None:
    assert words(page) <= 1200


def test_every_page_is_in_the_navigation() -> None:
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES if page.is_relative_to(DOCS)}
    assert pages - SHOWN == {"index"}
    notebooks = {f"notebooks/{path.stem}" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert notebooks <= SHOWN
    for name in SHOWN - pages - notebooks - GENERATED:
        assert (ROOT / f"{name}.md").exists(), name


@pytest.mark.parametrize("page", sorted((DOCS / "live").glob("*.html")), ids=lambda page: page.stem)
def test_live_pages_are_those_that_explore_writes_today(page: Path) -> None:
    """Write them again with `python benchmarks/live_pages.py`."""
    text = page.read_text("utf-8")
    parts = [part for part in EXPLORE.iterdir() if part.suffix in (".css", ".js")]
    assert [part.name for part in parts if part.read_text("utf-8").strip() not in text] == []
