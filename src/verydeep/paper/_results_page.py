"""docs/results.md: all results of the paper's tables and figures, written from `results/` alone."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verydeep.files import read_json, read_text, write_atomic
from verydeep.paper._templates import TEMPLATES
from verydeep.paper.fig1._claims import fig1_claims
from verydeep.paper.fig1._summary import TOP, Fig1Row
from verydeep.paper.tables._page import (
    AuthorsLog,
    TableLine,
    authors_log,
    core_hours,
    read_results,
    replaced_recipes,
    table_rows,
)
from verydeep.paper.tables._results import TableResult
from verydeep.paper.tables._rows import TABLES
from verydeep.report import render_markdown

_FIRST_LINES = {  # of pages that may be overwritten
    "results.md": "# Results\n\nWritten by `verydeep reproduce`",
    "claims.md": "# The paper's statements, measured\n\nWritten by `verydeep reproduce claims`",
}
_ORDER = "They took the images in the same order in every epoch"
_DIFFERENCES = {  # between the authors' runs and ours, for the tables with a log
    "table1": f"{_ORDER}; we shuffle them.",
    "table3": f"{_ORDER} and drew the weights of their first layer from N(0, 1);\n"
    "we shuffle the images and initialise that layer like the others.",
}
_FIGURES = {2: ("figure2",), 3: ("figure3-mnist", "figure3-cifar100"), 4: ("figure4",)}


@dataclass(frozen=True)
class _Table:
    """A table of the page, with the authors' log and how their runs differ from ours."""

    title: str
    lines: list[TableLine]
    log: AuthorsLog | None
    difference: str


def page_path(results: Path, quick: bool = False, name: str = "results.md") -> Path:
    """Where a page belongs: in `docs/` next to `results/`, or in `results` if a different page is there already."""
    page = results.absolute().parent / "docs" / name
    ours = read_text(page).startswith(_FIRST_LINES[name]) if page.exists() else page.parent.is_dir()
    if ours and not quick and results.absolute().name == "results":
        return page
    return results / name


def write_page(results: Path, quick: bool = False) -> Path:
    """Write the page again and return its path."""
    path = page_path(results, quick)
    write_atomic(path, results_page(results, path.parent))
    return path


def results_page(results: Path, beside: Path) -> str:
    """The page, in Markdown.

    Args:
        results: The folder of all results.
        beside: The folder of the page, which its links are relative to.
    """
    found = read_results(results / "tables")
    return render_markdown(
        "results.md",
        TEMPLATES,
        link=os.path.relpath(results, beside),
        exists=lambda file: (results / file).exists(),
        tables=_tables(found),
        core_hours=core_hours(found),
        replaced=replaced_recipes(results / "tables" / "replaced"),
        figures=_FIGURES,
        top=TOP,
        **_fig1(results / "fig1" / "table.json"),
    )


def _tables(results: Sequence[TableResult]) -> list[_Table]:
    return [
        _Table(
            title,
            table_rows(table, results),
            authors_log(results, table) if table in _DIFFERENCES else None,
            _DIFFERENCES.get(table, ""),
        )
        for table, title in TABLES.items()
    ]


def _fig1(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {"rows": None}
    values = read_json(file)
    rows = [Fig1Row(**(row | {"settings": tuple(row["settings"])})) for row in values["rows"]]
    return {"rows": rows, "claims": fig1_claims(rows), "epochs_left": values.get("epochs_left", 0)}
