"""The site: `python docs/site/build.py [FOLDER]`, or `make docs`. Needs no network.

The Markdown in docs/ is written for readers of the repository. A copy of it is put together with the pages of results
and notebooks, the changelog and generated reference pages, and Sphinx makes the site of it, by default in build/site.
Warnings are errors. Open index.html from disk: no server is needed.
"""

import os
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

from _api import api_pages
from _commands import command_pages
from sphinx.cmd.build import build_main

SITE = Path(__file__).resolve().parent
DOCS, ROOT = SITE.parent, SITE.parents[1]
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#:]+)((?:#[^)\s]*)?)\)|(<img src=\")([^\":]+)(\")")


def main(out: Path) -> int:
    """Build the site and return Sphinx's exit code."""
    source = out.parent / f"{out.name}-source"
    for folder in (source, out):
        shutil.rmtree(folder, ignore_errors=True)
    titles = {path: title for part in contents() for title, path in part["pages"]}
    for name, title in titles.items():
        page = next((folder / f"{name}.md" for folder in (DOCS, ROOT) if (folder / f"{name}.md").exists()), None)
        if page is not None:  # reference pages are generated below
            text = _with_site_links(page, source, set(titles))
            _write(source / f"{name}.md", text if text.startswith("# ") else f"# {title}\n\n{text}")
    _write(source / "index.md", _with_site_links(DOCS / "index.md", source, set(titles)) + _navigation())
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        _copy(notebook, source)
    for page in (DOCS / "live").glob("*.html"):  # interactive pages, where there are any
        _copy(page, source / "extra")
    for name, text in (command_pages() | api_pages()).items():
        _write(source / "reference" / f"{name}.md", text)
    return int(build_main(["-W", "--keep-going", "-q", "-j", "2", "-c", str(SITE), str(source), str(out)]))


def contents() -> list[dict[str, Any]]:
    """The parts of the navigation; each page is a pair of a title, or "", and a path without suffix."""
    parts = tomllib.loads((SITE / "contents.toml").read_text())["part"]
    return [part | {"pages": [_page(page) for page in part["pages"]]} for part in parts]


def _page(entry: str) -> tuple[str, str]:
    match = re.fullmatch(r"(.+) <(.+)>", entry)
    return (match[1], match[2]) if match else ("", entry)


def site_path(path: Path) -> Path:
    """Where a file of the repository is in the site: those of docs/ come to the top."""
    return path.relative_to(DOCS if path.is_relative_to(DOCS) else ROOT)


def _with_site_links(page: Path, source: Path, shown: set[str]) -> str:
    """The page with links that lead to the same things in the site; what it shows or links to is copied."""

    def replace(match: re.Match[str]) -> str:
        picture, text, link, anchor, before, image, after = match.groups()
        target = (page.parent / (link or image)).resolve()
        if text and "](" in text:  # a picture that is a link
            text = LINK.sub(replace, text)
        if not target.exists():  # Sphinx says where
            return match[0] if image else f"{picture}[{text}]({link}{anchor})"
        moved = Path(os.path.relpath(site_path(target), site_path(page).parent)).as_posix()
        if target.name == "README.md" and target.parent == ROOT:
            moved = "index.md"
        if target.is_dir():  # only a repository shows folders
            return text
        if target.suffix == ".html":
            _copy(target, source / "extra")
        elif target.suffix == ".md" and moved != "index.md" and str(site_path(target).with_suffix("")) not in shown:
            _copy(target, source, ".txt")  # to be downloaded
            moved += ".txt"
        elif target.suffix != ".md":
            _copy(target, source)
        if image:
            return f"{before}{moved}{after}"
        if target.suffix == ".html":
            return f'<a href="{moved}{anchor}">{_plain(text)}</a>'
        return f"{picture}[{text}]({moved}{anchor})"

    parts = re.split(r"(^```.*?^```$)", page.read_text(), flags=re.S | re.M)
    return "".join(part if part.startswith("```") else LINK.sub(replace, part) for part in parts)


def _plain(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", text)


def _navigation() -> str:
    """An entry for each page, under the headings of contents.toml."""
    trees = []
    for part in contents():
        entries = "\n".join(f"{title} <{path}>" if title else path for title, path in part["pages"])
        trees.append(f'\n```{{toctree}}\n:hidden:\n:caption: "{part["title"]}"\n\n{entries}\n```\n')
    return "".join(trees)


def _copy(path: Path, folder: Path, suffix: str = "") -> None:
    target = folder / f"{site_path(path)}{suffix}"
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site").absolute()))
