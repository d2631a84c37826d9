"""The console that commands print to: as wide as the terminal, or 160 characters for files and pipes."""

from __future__ import annotations

import os
import sys
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from verydeep.terminal import echo, without_controls

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import ConsoleOptions, RenderableType

_PAGE_WIDTH = 160  # characters: fits the widest table, that of verydeep bench


class _Console(Console):
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else without_controls(text), style, control)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # verydeep.cli.main handles it; rich would exit with an error


# With width None, rich takes the width of the terminal, or COLUMNS.
console = _Console(width=None if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit() else _PAGE_WIDTH)


def print_line(text: str) -> None:
    """Print text unchanged: no markup, no highlighting, and paths unbroken."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def right_aligned_table(*headers: str, names: int = 1) -> Table:
    """Make a table whose first `names` columns are text and whose other columns are numbers."""
    table = Table(*headers)
    for column in table.columns[names:]:
        column.justify = "right"
    return table


def print_columns(rows: Sequence[Mapping[str, Text]], left: Sequence[str], expendable: Sequence[str]) -> list[str]:
    """Print rows as columns without lines between them, leaving out columns that the console has no room for.

    Args:
        rows: The cells of each row by the name of their column; all rows have the columns of the first.
        left: The columns that are aligned on the left; the others are numbers.
        expendable: The columns to leave out of a narrow table, the first one first.

    Returns:
        The columns that were left out.
    """
    hidden: list[str] = []
    for name in expendable:
        if columns_width(rows, hidden) <= console.width:
            break
        if name in rows[0]:
            hidden.append(name)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown = [name for name in rows[0] if name not in hidden]
    missing = max(0, columns_width(rows, hidden) - console.width)
    for number, name in enumerate(shown):
        width = _widest(rows, name) - (missing if number == 0 else 0)  # names are cut rather than numbers
        side: Literal["left", "right"] = "left" if name in left else "right"
        table.add_column(name, justify=side, no_wrap=True, overflow="ellipsis", width=max(width, 4))
    for row in rows:
        table.add_row(*(row[name] for name in shown))
    console.print(table)
    return hidden


def print_markdown(lines: Sequence[str], expendable: Sequence[str] = ()) -> None:
    """Print Markdown: unchanged into files and pipes, and on a terminal with tables in columns that fit its width.

    Args:
        lines: Lines of text and tables.
        expendable: The columns to leave out on a narrow terminal, the first one first.
    """
    for is_table, part in groupby(lines, lambda line: line.startswith("|")):
        if is_table and console.is_terminal:
            _print_table([[cell.strip() for cell in line.strip("|").split(" |")] for line in part], expendable)
        else:
            echo(*part)


def _print_table(lines: Sequence[Sequence[str]], expendable: Sequence[str]) -> None:
    names, _, *cells = lines
    rows = [{name: Text(cell) for name, cell in zip(names, row, strict=True)} for row in cells]
    hidden: list[str] = []
    for name in expendable:
        if rows and name in names and columns_width(rows, hidden) > console.width:
            hidden.append(name)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in names:
        if name not in hidden:
            table.add_column(name)
    for row in rows:
        table.add_row(*(cell for name, cell in row.items() if name not in hidden))
    console.print(table)
    if hidden:
        console.print(f"A wider terminal also shows: {', '.join(hidden)}.", highlight=False)


def _widest(rows: Sequence[Mapping[str, Text]], name: str) -> int:
    return max(len(name), *(row[name].cell_len for row in rows))


def columns_width(rows: Sequence[Mapping[str, Text]], hidden: Sequence[str] = ()) -> int:
    """How many characters `print_columns` needs."""
    shown = [name for name in rows[0] if name not in hidden]
    return sum(_widest(rows, name) for name in shown) + 2 * (len(shown) - 1)
