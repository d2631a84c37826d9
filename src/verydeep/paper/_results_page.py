"""docs/results.md: everything that was measured of the paper's tables and figures, written from results/ alone."""

import os
from pathlib import Path
from typing import Any

from verydeep.files import read_json, write_atomic
from verydeep.paper.fig1._claims import claim_lines
from verydeep.paper.fig1._page import table_lines, unfinished
from verydeep.paper.fig1._summary import Row
from verydeep.paper.tables._page import log_lines, read_results, replaced_lines, tables_lines
from verydeep.paper.tables._rows import TABLES

_OURS = "# Results\n\nWritten by `verydeep reproduce`"
_HEAD = f"""{_OURS} from `results/`; `verydeep reproduce all --minutes 0` writes it again. Accuracies are of
the test set after the last epoch of a run, in one view; no epoch and no seed was chosen by them. `paper` is the
authors' recipe for the highway networks of Tables 1 and 3; for Table 2 and the peers it is inferred, as nothing or not
all was published. `fast` trains the same network for a tenth of the epochs with settings of our own: optimiser,
schedule, learning rate, clipping, weight decay, dropout, smoothing of labels, averaging, gate bias and augmentation.
The files in `configs/` say what was inferred and changed. Times are of training and measuring together."""
_REPLACED = """That these fell short, and so that something had to change, was seen on the test set; the values that
took their place were compared on validation images (`docs/fast-recipe.md`)."""
_LOG = """What the authors' published log says of the test accuracy, in percent, after an epoch, and our first run of
their recipe as far as it has got.
They took the images in the same order in every epoch"""
_LOGS = {
    "table1": f"{_LOG}, we shuffle.",
    "table3": f"{_LOG} and their first layer started from N(0, 1); we shuffle,\nand start it like the others.",
}
_FIGURES = (("2", ("figure2",)), ("3", ("figure3-mnist", "figure3-cifar100")), ("4", ("figure4",)))


def page_path(results: Path, quick: bool = False) -> Path:
    """Where the page of a folder of results is: in docs/ beside it, if that is ours to write and it was no trial."""
    page = results.absolute().parent / "docs" / "results.md"
    ours = page.read_text(errors="replace").startswith(_OURS) if page.exists() else page.parent.is_dir()
    if ours and not quick and results.absolute().name == "results":
        return page
    return results / "results.md"


def write_page(results: Path, quick: bool = False) -> Path:
    """Write the page again, and say where it is; what a trial on the digits gave stays beside its results."""
    path = page_path(results, quick)
    write_atomic(path, results_page(results, path.parent))
    return path


def results_page(results: Path, beside: Path) -> str:
    """The page, in Markdown.

    Args:
        results: The folder of all results.
        beside: The folder the page is in, for its links.
    """
    found = read_results(results / "tables")
    link = os.path.relpath(results, beside)
    parts = [_HEAD]
    for table, title in TABLES.items():
        parts += [f"## {title}", "\n".join(tables_lines(table, found))]
        if table in _LOGS:
            parts += [_LOGS[table], "\n".join(log_lines(found, table))]
    parts += [_picture(results, link, "tables/curves.png", "Test accuracy over epochs; dashed: published")]
    if replaced := replaced_lines(results / "tables" / "replaced"):
        parts += ["## Short recipes that were replaced", _REPLACED, "\n".join(replaced)]
    parts += [*_figure_1(results, link), *_other_figures(results, link)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _figure_1(results: Path, link: str) -> list[str]:
    title, file = "## Figure 1: training of plain and highway networks of 10 to 100 layers", results / "fig1/table.json"
    if not file.exists():
        return [title, "Not yet run: `verydeep reproduce fig1`."]
    values = read_json(file)
    rows, left = [_row(row) for row in values["rows"]], values.get("epochs_left", 0)
    more = f"Ranges, what decides and which gate bias: [fig1.md]({link}/fig1/fig1.md)."
    return [
        title,
        "\n".join(table_lines(rows)),
        "\n".join(claim_lines(rows, left)),
        unfinished(left),
        more,
        _picture(results, link, "fig1/fig1.png", "Figure 1"),
    ]


def _row(values: dict[str, Any]) -> Row:
    first, second = values["settings"]
    return Row(**(values | {"settings": (first, second)}))


def _other_figures(results: Path, link: str) -> list[str]:
    parts = ["## Figures 2, 3 and 4: what the gates do, and which layers matter"]
    if (results / "figures/README.md").exists():
        parts.append(f"The paper's statements and what was measured: [results/figures]({link}/figures/README.md).")
    for number, names in _FIGURES:
        pictures = [_picture(results, link, f"figures/{name}.png", f"Figure {number}") for name in names]
        parts.append("\n\n".join(filter(None, pictures)) or f"Figure {number}: not yet run.")
    return parts


def _picture(results: Path, link: str, file: str, text: str) -> str:
    return f"![{text}]({link}/{file})" if (results / file).exists() else ""
