"""Markdown pages and tables, rendered from templates."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def render_markdown(template: str, folder: Path, **values: object) -> str:
    """Fill in a template.

    A template writes a line of a table as `{{ [cell, cell, ...] | row }}` and its first two lines as
    `{{ ["name", "name", ...] | header }}`.

    Args:
        template: Its file name.
        folder: The folder that contains it and the templates it includes.
        values: What the template refers to by name; a missing one is an error.
    """
    return _environment(folder).get_template(template).render(values)


@cache
def _environment(folder: Path) -> Environment:
    """Lines that hold only a template tag leave no trace in the output; Markdown is not escaped like HTML."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"row": _row, "header": _header}
    return environment


def _row(cells: Iterable[object]) -> str:
    """A line of a table; None is an empty cell, and what would end a cell is escaped."""
    texts = (" ".join(str(cell).replace("|", "\\|").split()) if cell is not None else "" for cell in cells)
    return f"|{'|'.join(f' {text} ' if text else ' ' for text in texts)}|"


def _header(names: Iterable[object]) -> str:
    """The names of a table's columns, and the line below them."""
    columns = list(names)
    return f"{_row(columns)}\n|{'---|' * len(columns)}"
