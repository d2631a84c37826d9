"""Markdown pages and tables, rendered from the templates in `templates/`."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_TEMPLATES = Path(__file__).parent / "templates"


def render_markdown(template: str, folder: Path = _TEMPLATES, **values: object) -> str:
    """Fill in a template.

    Args:
        template: Its file name.
        folder: The folder that contains it and the templates it includes.
        values: What the template refers to by name; a missing one is an error.
    """
    return _environment(folder).get_template(template).render(values)


@cache
def _environment(folder: Path) -> Environment:
    """Lines that hold only a template tag leave no trace in the output."""
    return Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
