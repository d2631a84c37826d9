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

from _api import api_pages
from _commands import command_pages
from sphinx.cmd.build import build_main

SITE = Path(__file__).resolve().parent
DOCS, ROOT = SITE.parent, SITE.parents[1]
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#:]+)((?:#[^)\s]*)?)\)|(<img src=\")([^\":]+)(\")")
COPIED = (".html", ".png", ".svg", ".jpg")  # to the same place in the site


def main(out: Path) -> int:
    """Build the site and return Sphinx's exit code."""
    source = out.parent / f"{out.name}-source"
    for folder in (source, out):
        shutil.rmtree(folder, ignore_errors=True)
    pages = [*DOCS.glob("*.md"), *DOCS.glob("tutorials/*.md"), *(ROOT / "results").rglob("*.md")]
    pages += [ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
    for page in pages:
        _write(source / site_path(page), _with_site_links(page, source))
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        _copy(notebook, source)
    for page in (DOCS / "live").glob("*.html"):  # interactive pages, where there are any
        _copy(page, source / "extra")
    for name, text in (command_pages() | api_pages()).items():
        _write(source / "reference" / f"{name}.md", text)
    home = source / "index.md"
    _write(home, home.read_text() + _contents())
    return int(build_main(["-W", "--keep-going", "-q", "-j", "2", "-c", str(SITE), str(source), str(out)]))


def site_path(path: Path) -> Path:
    """Where a file of the repository is in the site: those of docs/ come to the top."""
    return path.relative_to(DOCS if path.is_relative_to(DOCS) else ROOT)


def _with_site_links(page: Path, source: Path) -> str:
    """The page with links that lead to the same things in the site; what it shows or links to is copied."""

    def replace(match: re.Match[str]) -> str:
        picture, text, link, anchor, before, image, after = match.groups()
        target = (page.parent / (link or image)).resolve()
        if not target.exists():  # Sphinx says where
            return match[0]
        moved = Path(os.path.relpath(site_path(target), site_path(page).parent)).as_posix()
        if target.name == "README.md" and target.parent == ROOT:
            moved = "index.md"
        if target.is_dir():  # only a repository shows folders
            return text
        if target.suffix in COPIED:
            _copy(target, source / "extra" if target.suffix == ".html" else source)
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


def _contents() -> str:
    """The navigation; an entry for each page, under the headings of contents.toml."""
    parts = tomllib.loads((SITE / "contents.toml").read_text())["part"]
    return "".join(
        f"\n```{{toctree}}\n:hidden:\n:caption: \"{part['title']}\"\n\n" + "\n".join(part["pages"]) + "\n```\n"
        for part in parts
    )


def _copy(path: Path, folder: Path) -> None:
    target = folder / site_path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site").absolute()))
