"""The pages of the documentation, and what can be read from one without building the site."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("tutorials/*.md"))]
LINKED = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "results").rglob("*.md"))]


@cache
def tokens(page: Path) -> list[Token]:
    """The parsed Markdown of a page."""
    return MarkdownIt("commonmark").enable("table").parse(page.read_text())


def links(page: Path) -> Iterator[str]:
    """Where the links and pictures of a page lead."""
    for token in tokens(page):
        for child in token.children or ():
            for name in ("href", "src"):
                if name in child.attrs:
                    yield str(child.attrs[name])
        if token.type in ("html_block", "inline"):
            yield from re.findall(r'<\w+ [^>]*(?:src|href)="([^"]+)"', token.content)


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as repository hosts and the site make them."""
    pairs = zip(tokens(page), tokens(page)[1:], strict=False)
    texts = [
        "".join(child.content for child in following.children or () if child.type in ("text", "code_inline"))
        for token, following in pairs
        if token.type == "heading_open"
    ]
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts}


def words(page: Path) -> int:
    """The number of words outside of code blocks.

    Those of tables count, except on pages that a command writes: they grow with what was measured.
    """
    is_generated, in_table, content = "Written by `verydeep" in page.read_text(), False, list[str]()
    for token in tokens(page):
        in_table = token.type == "table_open" or (in_table and token.type != "table_close")
        if token.type == "inline" and not (in_table and is_generated):
            content.append(token.content)
    return sum(bool(re.search(r"[A-Za-z]{2}", word)) for word in " ".join(content).split())
