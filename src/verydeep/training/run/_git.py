"""The commit of a git checkout, read from its files.

Git itself is not run: in a checkout of unknown origin, even `git status` and `git describe --dirty` start programs that
the checkout's configuration names.
"""

import re
from collections.abc import Iterator
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MOST_LINKS = 5  # as in git: HEAD names a branch, which may name another
_LONGEST = 4096  # characters of a line


def checked_out_commit(folder: Path) -> str | None:
    """Return the commit that is checked out in a folder or the nearest one above it, or None where there is none."""
    try:
        folder = folder.resolve()
        for place in (folder, *folder.parents):
            git = _git_folder(place / ".git")
            if git and (git / "HEAD").is_file():
                return _resolve("HEAD", git)
    except (OSError, ValueError, RuntimeError):  # unreadable, no name of a file, or links in a circle
        pass
    return None


def _git_folder(path: Path) -> Path | None:
    """Follow the file that stands for the folder in worktrees and submodules."""
    if path.is_dir():
        return path
    kind, _, target = _first_line(path).partition(": ")
    return path.parent / target if kind == "gitdir" else None


def _resolve(name: str, git: Path) -> str | None:
    common = git / (_first_line(git / "commondir") or ".")  # of a worktree: its branches are in the main checkout
    for _ in range(_MOST_LINKS):
        value = _first_line(git / name) or _first_line(common / name) or _packed(common / "packed-refs", name)
        if not value.startswith("ref: "):
            return value if _COMMIT.fullmatch(value) else None
        name = value.removeprefix("ref: ").strip()
    return None


def _packed(path: Path, name: str) -> str:
    pairs = (line.split(" ", 1) for line in _lines(path) if " " in line)
    return next((commit for commit, packed in pairs if packed == name), "")


def _first_line(path: Path) -> str:
    return next(_lines(path), "")


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of an ordinary file; anything else, such as a pipe that nobody writes to, has none."""
    if path.is_file():
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            while line := file.readline(_LONGEST):
                yield line.rstrip("\n")
