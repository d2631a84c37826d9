"""Markdown from templates: tables whose cells cannot break them."""

from pathlib import Path

import pytest
from jinja2 import UndefinedError

from verydeep.report import render_markdown


def test_cells_are_escaped_and_empty_ones_are_kept(tmp_path: Path) -> None:
    (tmp_path / "t.md").write_text("{{ names | header }}\n{% for row in rows %}\n{{ row | row }}\n{% endfor %}\n")
    text = render_markdown("t.md", tmp_path, names=["a", "b"], rows=[["x | y", None], ["two\nlines", ""], [1, "<b>"]])
    assert text == "| a | b |\n|---|---|\n| x \\| y | |\n| two lines | |\n| 1 | <b> |\n"


def test_a_value_that_is_missing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "t.md").write_text("{{ nothing }}")
    with pytest.raises(UndefinedError):
        render_markdown("t.md", tmp_path)
