"""`verydeep predict`: predictions of a run's network for new rows or images."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from verydeep.cli._options import Argument, RunFolder, Threads, option, positional, read_options
from verydeep.errors import UserError, list_names
from verydeep.terminal import echo
from verydeep.words import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from verydeep.cli._prediction_files import Part
    from verydeep.data import NewSamples, Rows, Table
    from verydeep.training import Predictor, Run


@dataclass(frozen=True)
class PredictOptions:
    """Predict for new rows or images with a run's network.

    The output has the class and the probability of each class; the values of a regression, in their original units; or
    0 or 1 and the probability of each label.
    """

    run: RunFolder
    new: Annotated[
        tuple[str, ...],
        positional("NEW", "A CSV, Parquet or .npz file, a folder of images, or images; - is CSV from standard input."),
    ]
    out: Annotated[Path | None, option("FILE", aliases=("-o",))] = None
    """The file to write: .csv, .parquet, .npz or .jsonl; by default, CSV is printed."""
    keep: Annotated[tuple[str, ...], Argument("COLUMN,...")] = ()
    """Columns of the table to copy to the output, such as an id; all copies every column."""
    delimiter: Annotated[str | None, option("CHARACTER")] = None
    """The column separator of a CSV file; by default, that of the training data."""
    decimal: Literal[".", ","] | None = None
    """The decimal point of numbers in a CSV file; by default, that of the training data."""
    encoding: Annotated[str | None, option("NAME")] = None
    """The encoding of a CSV file; by default, that of the training data."""
    device: Annotated[str, option("DEVICE")] = "auto"
    """Compute on this device, such as cpu or cuda; by default, on a GPU if there is one."""
    threads: Threads = None
    json: Annotated[bool, option("", "Print one JSON object per row; with -o, a summary as JSON.")] = False


OPTIONS = {"predict": PredictOptions}


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = read_options(PredictOptions, "predict", arguments)
    from verydeep.cli._prediction_files import check_suffix
    from verydeep.cli._run_options import computing, open_run

    if options.out is not None:
        check_suffix(options.out)
        if any(_is_same(options.out, new) for new in options.new):
            raise UserError(f"-o {options.out} is the file with the new rows; choose another name")
    run = open_run(options.run)
    if options.out is not None and _is_same(options.out, str(run.path / "metrics.jsonl")):
        raise UserError(f"-o {options.out} holds the metrics of the run; choose another name")
    with computing(options.threads):
        _predict(options, run)


def _is_same(out: Path, new: str) -> bool:
    return out.exists() and os.path.exists(new) and out.samefile(new)


def _predict(options: PredictOptions, run: Run) -> None:
    from verydeep.cli._prediction_files import print_parts, write_parts
    from verydeep.cli._run_options import load_model
    from verydeep.training import Predictor, ProcessGroup

    load_model(run)
    written = {name: getattr(options, name) for name in ("delimiter", "decimal", "encoding")}
    data = replace(run.config.data, **{name: value for name, value in written.items() if value is not None})
    source = _Source(options, Predictor(run, ProcessGroup.join(options.device).device, data))
    with _progress(options):
        parts = source.parts()
        parts = chain([next(parts)], parts)  # the first part before any output, so that a wrong file leaves none
        if options.out is None:
            print_parts(parts, options.json)
            return
        write_parts(options.out, parts)
    if options.json:
        echo(json.dumps({"file": str(options.out), "rows": source.rows, "ignored": source.ignored}, ensure_ascii=False))
    else:
        echo(f"{options.out}: predictions for {plural(source.rows, source.noun)}")


class _Source:
    """New data of the command line, predicted part by part.

    Attributes:
        rows: How many have been predicted.
        ignored: The columns that are not used.
        noun: What is predicted for.
    """

    def __init__(self, options: PredictOptions, predictor: Predictor) -> None:
        self.options, self.predictor = options, predictor
        self.rows, self.noun = 0, "row"
        self.ignored: list[str] = []

    def parts(self) -> Iterator[Part]:
        from verydeep.cli._prediction_files import Part

        keep = None if self.options.keep == ("all",) else self.options.keep
        for number, predictions in enumerate(self.predictor.parts(_rows(self.options.new), keep)):
            samples = predictions.samples
            if number == 0:
                names = self._kept_names(samples)
                self.noun = "image" if samples.files else "row"
            yield Part(_kept(samples, names), predictions, self.predictor.task)
            self.rows += len(samples)

    def _kept_names(self, samples: NewSamples) -> list[str]:
        """The columns to copy to the output; the others that the network does not use are named on stderr."""
        from verydeep.data import Table

        table, wanted = samples.raw, self.options.keep
        if not isinstance(table, Table):
            if wanted:
                raise UserError("--keep is for the columns of a table; the names of images are always in the output")
            return []
        names = list(table.columns) if wanted == ("all",) else list(dict.fromkeys(wanted))
        for name in names:
            table.check_has(name, "--keep")
        self.ignored = [name for name in self.predictor.extra_columns(samples) if name not in names]
        if self.ignored:
            columns = "the column" if len(self.ignored) == 1 else "the columns"
            echo(f"verydeep: {columns} {list_names(self.ignored)} of {table.path} will not be used", file=sys.stderr)
        return names


def _rows(new: tuple[str, ...]) -> Rows:
    if new == ("-",):
        return sys.stdin.buffer
    if "-" in new:
        raise UserError("standard input (-) cannot be combined with files; give one of them")
    return new[0] if len(new) == 1 else list(new)


def _kept(samples: NewSamples, names: list[str]) -> dict[str, np.ndarray]:
    import numpy as np

    from verydeep.data import Table

    kept = {"file": np.array(samples.files, dtype=object)} if samples.files else {}
    if isinstance(samples.raw, Table):
        kept |= {name: _as_written(samples.raw, name) for name in names}
    return kept


def _as_written(table: Table, name: str) -> np.ndarray:
    column = table.as_text(name)
    return column.expand(column.values, "", object)


@contextmanager
def _progress(options: PredictOptions) -> Iterator[None]:
    """Show how much of the file has been predicted, unless the predictions themselves go to the terminal."""
    from verydeep.cli._status import status
    from verydeep.data import reading_progress

    name = "standard input" if options.new == ("-",) else Path(options.new[0]).name
    with (
        status(f"predicting for {name}", quiet=options.out is None and sys.stdout.isatty()) as show,
        reading_progress(lambda name, share: show(f"predicting for {name}: {share:.0%}")),
    ):
        yield
