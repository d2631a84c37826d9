"""`verydeep eval`: what a run's network gets right, class by class."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.markup import escape

from verydeep.cli._options import read_options

if TYPE_CHECKING:
    from rich.table import Table

    from verydeep.training import Confusion, Run

_SHOWN = 12  # classes whose confusion matrix fits into a terminal


@dataclass(frozen=True)
class EvalOptions:
    """Measure a run's network: loss, accuracy, accuracy of every class, and which classes it confuses."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The run's folder."""
    data: Annotated[str | None, tyro.conf.arg(metavar="PATH_OR_NAME")] = None
    """Other data, prepared as the run's training data was; the run's own unless given."""
    split: Literal["test", "valid", "train"] = "test"
    """Which part; other data that is not split is taken whole."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where evaluation.json, confusion.png and confusion.svg go; RUN/eval/DATA-SPLIT unless given, for other data
    with the digest of its path."""
    root: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where known datasets are kept; $VERYDEEP_DATA or the user's cache unless given."""
    device: str = "auto"
    """cpu, cuda, ...; auto takes a GPU where there is one."""
    json: bool = False
    """Print JSON instead of tables."""


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = read_options(EvalOptions, "eval", arguments)
    from verydeep.cli._run_options import data_label, printable
    from verydeep.files import write_atomic
    from verydeep.report import plot_confusion
    from verydeep.training import ProcessGroup, Run, RunData, confusion, load_data

    run = Run.load(options.run)
    model = run.model
    split = load_data(run, options.data, options.split, options.root)
    data = RunData.load(run)
    found = confusion(model, split, data.classes, ProcessGroup.join(options.device).device)
    name = data.name if options.data is None else data_label(options.data, options.split)
    part = None if split.whole else options.split
    result = {"run": str(run.path), "data": name, "source": options.data, "split": part} | found.to_dict()
    folder = options.out or run.path / "eval" / _folder(name, part, options.data)
    title = f"{run.path.resolve().name} on {name}: {found.accuracy:.2%} of {found.samples:,} right"
    write_atomic(folder / "evaluation.json", json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    for suffix in ("png", "svg"):
        plot_confusion(found, folder / f"confusion.{suffix}", printable(title))
    if options.json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        _print(run, name, found, folder)


def _folder(name: str, split: str | None, source: str | None) -> str:
    """Other data never takes the place of the run's own, nor of a file of the same name elsewhere."""
    words = [name.rstrip("/"), split]
    if source is not None:
        where = os.fsencode(Path(source).resolve() if Path(source).exists() else source)  # a known set is nowhere
        words.append(hashlib.sha256(where).hexdigest()[:8])
    return "-".join(word for word in words if word)


def _print(run: Run, name: str, found: Confusion, folder: Path) -> None:
    from verydeep.cli._console import console

    if run.summary is None:
        console.print(f"{run.path} has not finished: these are its weights so far", highlight=False, markup=False)
    table = _classes(found, console.width)
    console.print(table)
    if len(table.columns) == 3:
        console.print(_worst(found))
    what = f"{found.samples:,} samples of {name}"
    console.print(f"{what}: loss {found.loss:.4g}, accuracy {found.accuracy:.2%}", highlight=False, markup=False)
    words = f"evaluation.json, confusion.png and confusion.svg are in {folder}"
    console.print(words, highlight=False, markup=False, soft_wrap=True)


def _classes(found: Confusion, width: int) -> Table:
    """A row for every class: its answers, if there is room for them, and how many were right."""
    cells = [max(len(name), len(str(int(found.counts.max())))) + 3 for name in found.classes]
    few = len(found.classes) <= _SHOWN and sum(cells) + 45 <= width
    table = _table("class \\ answer" if few else "class", *(found.classes if few else ()), "samples", "accuracy")
    for name, counts, accuracy in zip(found.classes, found.counts.tolist(), found.class_accuracy, strict=True):
        answers = [str(count) if count else "." for count in counts] if few else []
        table.add_row(escape(name), *answers, f"{sum(counts):,}", "" if accuracy is None else f"{accuracy:.2%}")
    return table


def _worst(found: Confusion) -> Table:
    table = _table("class", "most often taken for", "times")
    for name, other, count in found.mistakes()[:10]:
        table.add_row(escape(name), escape(other), str(count))
    return table


def _table(*headers: str) -> Table:
    from rich.table import Table

    table = Table(*map(escape, headers))
    for column in table.columns[1:]:
        column.justify = "right"
    return table
