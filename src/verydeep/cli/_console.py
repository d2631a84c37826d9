"""The console that commands print to: as wide as the terminal, or 160 characters for files and pipes."""

import os

from rich.console import Console, ConsoleDimensions
from rich.table import Table

_PAGE_WIDTH = 160  # characters: fits the widest table, that of verydeep bench


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # verydeep.cli.main handles it; rich would exit with an error

    @property  # type: ignore[misc]  # rich's can be set; nobody sets ours
    def size(self) -> ConsoleDimensions:
        """Found out at every use, because rich would keep the width that it had when it was made."""
        columns = os.environ.get("COLUMNS", "")
        if columns.isdigit():
            return ConsoleDimensions(int(columns), 25)
        return super().size if self.is_terminal else ConsoleDimensions(_PAGE_WIDTH, 25)


console = _Console()


def print_line(text: str) -> None:
    """Print text as it is: no markup, no highlighting, and paths unbroken."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def right_aligned_table(*headers: str, names: int = 1) -> Table:
    """Make a table whose first `names` columns are text and whose other columns are numbers."""
    table = Table(*headers)
    for column in table.columns[names:]:
        column.justify = "right"
    return table
