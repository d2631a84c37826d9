"""One dim line on the terminal while something takes seconds, so that no command is silent."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from verydeep.terminal import without_controls


@contextmanager
def status(text: str, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show what is being done while the body runs, if stderr is a terminal and nobody asked for quiet.

    The body gets a function that shows another text.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda _text: None
        return
    dim, plain = ("", "") if "NO_COLOR" in os.environ else ("\x1b[2m", "\x1b[0m")
    shown = ""

    def write(codes: str) -> None:
        sys.stderr.write(codes)
        sys.stderr.flush()

    def show(text: str) -> None:
        nonlocal shown
        if text != shown:
            write(f"\r\x1b[K{dim}{without_controls(text)} ...{plain}")
            shown = text

    show(text)
    try:
        yield show
    finally:
        write("\r\x1b[K")


@contextmanager
def reading(source: object, quiet: bool = False) -> Iterator[None]:
    """Show that data is being read, and how much of each table has been."""
    from verydeep.data import reading_progress

    with (
        status(f"reading {source}", quiet) as show,
        reading_progress(lambda name, fraction: show(f"reading {name}: {fraction:.0%}")),
    ):
        yield


def load_torch(quiet: bool = False) -> None:
    """Import torch, which takes a second or two."""
    if "torch" not in sys.modules:
        with status("loading PyTorch", quiet):
            import torch  # noqa: F401
