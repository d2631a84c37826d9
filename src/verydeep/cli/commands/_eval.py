"""`verydeep eval`: loss, accuracy per class and the confusion matrix of a run's network."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from rich.markup import escape

from verydeep.cli._options import DataRoot, Json, RunFolder, Threads, option, read_options

if TYPE_CHECKING:
    from rich.table import Table

    from verydeep.training import Confusion, Run

_MOST_CLASSES = 12  # whose confusion matrix fits into a terminal


@dataclass(frozen=True)
class EvalOptions:
    """Evaluate a run's network: loss, accuracy, accuracy per class, and which classes it confuses."""

    run: RunFolder
    data: Annotated[str | None, option("PATH_OR_NAME")] = None
    """Use other data, prepared as the training data was; by default, the run's own."""
    split: Literal["test", "valid", "train"] = "test"
    """The split to use; other data without splits is used in full."""
    out: Annotated[Path | None, option("FOLDER")] = None
    """The folder for evaluation.json, confusion.png and confusion.svg; by default, RUN/eval/DATA-SPLIT."""
    root: DataRoot = None
    device: Annotated[str, option("DEVICE")] = "auto"
    """Compute on this device, such as cpu or cuda; by default, on a GPU if there is one."""
    threads: Threads = None
    json: Json = False


OPTIONS = {"eval": EvalOptions}


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = read_options(EvalOptions, "eval", arguments)
    from verydeep.cli._run_options import computing, open_run

    run = open_run(options.run)
    with computing(options.threads):
        _evaluate(options, run)


def _evaluate(options: EvalOptions, run: Run) -> None:
    from verydeep.cli._run_options import data_label, printable, read_samples
    from verydeep.cli._status import status
    from verydeep.files import write_atomic
    from verydeep.report import plot_confusion
    from verydeep.training import ProcessGroup, RunData, confusion

    model = run.model
    split = read_samples(run, options.data, options.split, options.root)
    data = RunData.load(run)
    with status(f"evaluating {len(split):,} samples"):
        found = confusion(model, split, data.classes, ProcessGroup.join(options.device).device)
    name = data.name if options.data is None else data_label(options.data, options.split)
    part = None if split.whole else options.split
    result = {"run": str(run.path), "data": name, "source": options.data, "split": part} | found.to_dict()
    folder = options.out or run.path / "eval" / _folder(name, part, options.data)
    title = f"{run.path.resolve().name} on {name}: {found.accuracy:.2%} of {found.samples:,} correct"
    write_atomic(folder / "evaluation.json", json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    for suffix in ("png", "svg"):
        plot_confusion(found, folder / f"confusion.{suffix}", title=printable(title))
    if options.json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        _print(run, name, part, found, folder)


def _folder(name: str, split: str | None, source: str | None) -> str:
    """Name a folder so that other data never overwrites results of the run's own data, or of a namesake elsewhere."""
    words = [name.rstrip("/"), split]
    if source is not None:
        where = os.fsencode(Path(source).resolve() if Path(source).exists() else source)  # known datasets have no path
        words.append(hashlib.sha256(where).hexdigest()[:8])
    return "-".join(word for word in words if word)


def _print(run: Run, name: str, part: str | None, found: Confusion, folder: Path) -> None:
    from verydeep.analysis import split_name
    from verydeep.cli._console import console, print_line

    if run.summary is None:
        print_line(f"{run.path} has not finished: these are its weights so far")
    table = _class_table(found, console.width)
    console.print(table)
    if len(table.columns) == 3:
        console.print(_mistakes_table(found))
    what = f"{found.samples:,} samples of {name}" + (f" ({split_name(part)})" if part else "")
    print_line(f"{what}: loss {found.loss:.4g}, accuracy {found.accuracy:.2%}")
    print_line(f"evaluation.json, confusion.png and confusion.svg are in {folder}")


def _class_table(found: Confusion, width: int) -> Table:
    """Make a table with a row per class: its predictions, if they fit into the width, and its accuracy."""
    cells = [max(len(name), len(str(int(found.counts.max())))) + 3 for name in found.classes]
    few = len(found.classes) <= _MOST_CLASSES and sum(cells) + 45 <= width
    table = _table("true \\ predicted" if few else "class", *(found.classes if few else ()), "samples", "accuracy")
    for name, counts, accuracy in zip(found.classes, found.counts.tolist(), found.class_accuracy, strict=True):
        answers = [str(count) if count else "." for count in counts] if few else []
        table.add_row(escape(name), *answers, f"{sum(counts):,}", "" if accuracy is None else f"{accuracy:.2%}")
    return table


def _mistakes_table(found: Confusion) -> Table:
    table = _table("true class", "predicted class", "samples")
    for name, other, count in found.mistakes()[:10]:
        table.add_row(escape(name), escape(other), str(count))
    return table


def _table(*headers: str) -> Table:
    from verydeep.cli._console import right_aligned_table

    return right_aligned_table(*map(escape, headers))
