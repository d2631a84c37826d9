"""One dim line on the terminal while something takes seconds, so that no command is silent."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def status(text: str, quiet: bool = False) -> Iterator[None]:
    """Show what is being done while the body runs, if stderr is a terminal and nobody asked for quiet."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    dim, plain = ("", "") if "NO_COLOR" in os.environ else ("\x1b[2m", "\x1b[0m")
    print(f"{dim}{text} ...{plain}", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def load_torch(quiet: bool = False) -> None:
    """Import torch, which takes a second or two."""
    if "torch" not in sys.modules:
        with status("loading PyTorch", quiet):
            import torch  # noqa: F401
