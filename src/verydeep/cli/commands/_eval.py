"""`verydeep eval`: the metrics of a run's network with their intervals, and which classes it confuses."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from rich.markup import escape

from verydeep.cli._options import DataRoot, Json, RunFolder, Threads, option, read_options
from verydeep.terminal import echo

if TYPE_CHECKING:
    from rich.table import Table

    from verydeep.training import Confusion, Evaluation, Run

_MOST_CLASSES = 12  # whose confusion matrix fits into a terminal
_MOST_ROWS = 40  # labels or targets in a table


@dataclass(frozen=True)
class EvalOptions:
    """Evaluate a run's network with the metrics of its task, their 95 % intervals, and which classes it confuses.

    classification  accuracy beside the share of the most frequent class, balanced accuracy, F1, ROC-AUC,
                    average precision, log loss, calibration error; the confusion matrix
    multilabel      the same of each label and on average
    regression      RMSE, MAE and R2 in the units of the target; the residuals
    """

    run: RunFolder
    data: Annotated[str | None, option("PATH_OR_NAME")] = None
    """Use other data, prepared as the training data was; by default, the run's own."""
    split: Literal["test", "valid", "train"] = "test"
    """The split to use; other data without splits is used in full."""
    out: Annotated[Path | None, option("FOLDER")] = None
    """The folder for evaluation.json and the figures; by default, RUN/eval/DATA-SPLIT."""
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
    from verydeep.cli._run_options import data_label, evaluate_run, read_samples
    from verydeep.files import write_atomic
    from verydeep.training import RunData

    run.model  # noqa: B018 - a run without weights is an error before any data is read
    split = read_samples(run, options.data, options.split, options.root)
    found = evaluate_run(run, split, options.device)
    name = RunData.load(run).name if options.data is None else data_label(options.data, options.split)
    part = None if split.whole else options.split
    result = {"run": str(run.path), "data": name, "source": options.data, "split": part} | found.to_dict()
    folder = options.out or run.path / "eval" / _folder(name, part, options.data)
    write_atomic(folder / "evaluation.json", json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    files = ["evaluation.json", *_draw(found, folder, f"{run.path.resolve().name} on {name}")]
    if options.json:
        echo(json.dumps(result, ensure_ascii=False))
    else:
        _print(run, name, part, found)
        _print_files(files, folder)


def _draw(found: Evaluation, folder: Path, title: str) -> list[str]:
    """Draw the figures and return the names of their files."""
    from verydeep.cli._run_options import printable
    from verydeep.report import main_figure_name, plot_calibration, plot_evaluation

    if found.confusion is not None:
        title += f": {found.confusion.accuracy:.2%} of {found.samples:,} correct"
    main = main_figure_name(found)
    figures = {main: plot_evaluation(found, title=printable(title))}
    if found.calibration is not None:
        figures["calibration"] = plot_calibration(found)
    for name, figure in figures.items():
        for suffix in ("png", "svg"):
            figure.save(folder / f"{name}.{suffix}")
    return [f"{name}.{suffix}" for name in figures for suffix in ("png", "svg")]


def _folder(name: str, split: str | None, source: str | None) -> str:
    """Name a folder so that other data never overwrites results of the run's own data, or of a namesake elsewhere."""
    words = [name.rstrip("/"), split]
    if source is not None:
        where = os.fsencode(Path(source).resolve() if Path(source).exists() else source)  # known datasets have no path
        words.append(hashlib.sha256(where).hexdigest()[:8])
    return "-".join(word for word in words if word)


def _print(run: Run, name: str, part: str | None, found: Evaluation) -> None:
    from verydeep.analysis import split_name
    from verydeep.cli._console import console, print_line
    from verydeep.words import MEASURES, score

    if run.summary is None:
        print_line(f"{run.path} has not finished: these are its weights so far")
    if found.confusion is not None:
        table = _class_table(found.confusion, console.width)
        console.print(table)
        if len(table.columns) == 3:
            console.print(_mistakes_table(found.confusion))
    elif found.each:
        console.print(_each_table(found))
    console.print(_metrics_table(found))
    for sentence in found.remarks():
        print_line(sentence)
    measure = "r2" if found.task.kind == "regression" else "accuracy"
    value = score(measure, found.metrics[measure].value)
    what = f"{found.samples:,} samples of {name}" + (f" ({split_name(part)})" if part else "")
    print_line(f"{what}: loss {found.loss:.4g}, {MEASURES[measure]} {value}")


def _print_files(files: list[str], folder: Path) -> None:
    from verydeep.cli._console import print_line

    *others, last = files
    print_line(f"{', '.join(others)} and {last} are in {folder}")


def _metrics_table(found: Evaluation) -> Table:
    from verydeep.words import METRIC_NAMES, metric_value

    table = _table("metric", "value", "95 % bootstrap interval")
    for name, each in found.metrics.items():
        ends = "" if each.low != each.low else f"{metric_value(name, each.low)} to {metric_value(name, each.high)}"
        table.add_row(METRIC_NAMES[name], metric_value(name, each.value), ends)
    return table


def _each_table(found: Evaluation) -> Table:
    """Make a table with a row per label or target."""
    from verydeep.words import METRIC_NAMES, metric_value

    names = list(next(iter(found.each.values())))
    titles = [METRIC_NAMES.get(name, name) for name in names]
    table = _table("target" if found.task.kind == "regression" else "label", *titles)
    for name, metrics in list(found.each.items())[:_MOST_ROWS]:
        cells = [
            f"{each.value:.2%}" if key == "frequency" else metric_value(key, each.value)
            for key, each in metrics.items()
        ]
        table.add_row(escape(name), *cells)
    return table


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
