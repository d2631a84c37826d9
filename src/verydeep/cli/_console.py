"""The console that commands print to: as wide as the terminal, or 160 characters for files and pipes."""

import os
import sys

from rich.console import Console
from rich.table import Table

_PAGE_WIDTH = 160  # characters: fits the widest table, that of verydeep bench


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # verydeep.cli.main handles it; rich would exit with an error


# With width None, rich takes the width of the terminal, or COLUMNS.
console = _Console(width=None if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit() else _PAGE_WIDTH)


def print_line(text: str) -> None:
    """Print text as it is: no markup, no highlighting, and paths unbroken."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def right_aligned_table(*headers: str, names: int = 1) -> Table:
    """Make a table whose first `names` columns are text and whose other columns are numbers."""
    table = Table(*headers)
    for column in table.columns[names:]:
        column.justify = "right"
    return table
