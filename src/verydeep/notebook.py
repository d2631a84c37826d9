"""How results show themselves in a notebook: a line, a small table and pictures, as HTML that loads nothing."""

from base64 import b64encode
from collections.abc import Iterable
from html import escape


def html_card(title: str, rows: Iterable[tuple[str, str]] = (), pictures: Iterable[bytes] = ()) -> str:
    """The HTML of a result, for `_repr_html_`; all text is escaped.

    Args:
        title: The line above.
        rows: The names and values of a table.
        pictures: The content of PNG files.
    """
    style = 'style="text-align: left"'
    cells = "".join(f"<tr><th {style}>{escape(name)}</th><td {style}>{escape(value)}</td></tr>" for name, value in rows)
    table = f"<table>{cells}</table>" if cells else ""
    images = (f'<img alt="" src="data:image/png;base64,{b64encode(picture).decode()}">' for picture in pictures)
    return f"<div><p><b>{escape(title)}</b></p>{table}{''.join(images)}</div>"
