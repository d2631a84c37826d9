"""A text in a notebook that replaces itself. IPython is used only where it is running already."""

import sys
from importlib import import_module
from io import StringIO
from typing import Any


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def render_text(table: object, width: int = 100) -> str:
    """A table of rich as plain text."""
    from rich.console import Console

    console = Console(file=StringIO(), width=width, force_jupyter=False, color_system=None)
    console.print(table)
    assert isinstance(console.file, StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


class NotebookText:
    """The output of a cell, as plain text that is replaced by each update."""

    def __init__(self) -> None:
        self._handle: Any = None

    def update(self, text: str) -> None:
        """Show a text instead of the one before."""
        content = {"text/plain": text}
        if self._handle is None:
            self._handle = import_module("IPython.display").display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)
