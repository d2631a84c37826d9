"""Mutated tables through `verydeep train` and `verydeep predict`.

Every case (`_table_mutators.py`) starts from one of a few valid tables (classification, regression, labels; CSV, TSV,
Parquet), mutates cells, rows, columns, headers, quoting, encodings and bytes, and draws options. A small network is
trained on the mutated table, and a network that was trained on the valid one predicts for it. A command may succeed, or
print one line that starts with `verydeep:` and exit with 2. Everything else is a failure, also a number that is not
finite and a file that is left behind.
"""

import csv
import io
import json
import math
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet  # type: ignore[import-untyped]
from _table_mutators import TABLES, Case, make_case
from _warm import Ended, WarmWorker, import_as, run_forked

NETWORK = ["--depth", "3", "--width", "4", "--epochs", "1", "--threads", "1"]
SECONDS, GIGABYTES = 60.0, 3.0
PREDICTED = ("predicted_", "probability_")
LONGEST = 1500  # characters of a message
_WORKER = WarmWorker(SECONDS, GIGABYTES)


Run = Callable[[list[str], Path, Path | None], Ended]  # arguments, working directory, file at standard input


def check_case(case: Case, folder: Path, models: Path, run: Run) -> list[dict[str, Any]]:
    """Run the commands on a mutated table and describe what is wrong with each of them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    file = folder / case.file
    file.write_bytes(case.content)
    checked = []
    for command in ("train", "predict"):
        if command == "train":
            arguments = ["train", str(file), "--folder", str(folder / "run"), *NETWORK, *case.train]
            done = run(arguments, folder, None)
            wrong = [*wrong_end(done, folder), *wrong_run(done, folder / "run")]
        else:
            new = "-" if case.out == "-" else str(file)
            out = folder / case.out if case.out.startswith("out") else None
            arguments = ["predict", str(models / case.table), new, *case.predict, *(["-o", str(out)] if out else [])]
            done = run([*arguments, "--threads", "1"], folder, file if new == "-" else None)
            wrong = [*wrong_end(done, folder), *wrong_predictions(done, out, case)]
        expected = {case.file, "run" if command == "train" else case.out} if done.code == 0 else {case.file}
        left = sorted({each.name for each in folder.iterdir()} - expected)
        wrong += [f"left behind: {name}" for name in left]
        shutil.rmtree(folder / "run", ignore_errors=True)
        checked.append({"command": command, "ended": done, "wrong": wrong})
    return checked


def wrong_end(done: Ended, folder: Path) -> list[str]:
    """What is wrong with an exit code and with what was printed to standard error."""
    lines = done.err.removesuffix("\n").split("\n") if done.err else []
    notes = [line for line in lines if re.match(r"verydeep: (note:|the columns? .* will not be used$)", line)]
    errors = [line for line in lines if line not in notes]
    wrong = []
    if done.hung:
        wrong.append("a hang")
    elif done.code not in (0, 2):
        wrong.append(f"exit code {done.code}")
    if "Traceback" in done.err:
        wrong.append("a traceback")
    elif done.code == 2 and (len(errors) != 1 or not errors[0].startswith("verydeep: ")):
        wrong.append(f"{len(errors)} lines of errors")
    elif done.code == 0 and errors:
        wrong.append("errors despite exit code 0")
    wrong += [
        "a very long message" for line in lines if len(line) - line.count(str(folder)) * len(str(folder)) > LONGEST
    ]
    wrong += [f"a surprising note: {line}" for line in notes if "note:" in line and "has values in" not in line]
    if any(ord(c) < 32 and c not in "\n\t" for c in done.err):
        wrong.append("control characters in a message")
    return wrong


def wrong_run(done: Ended, run: Path) -> list[str]:
    """What is wrong with the files of a run that ended well, and with its numbers."""
    if done.code:
        return ["it printed results and failed"] if "finished after" in done.out else []
    wrong = [f"left behind: {file.name}" for file in run.rglob("*") if ".partial" in file.name or "tmp" in file.name]
    summary = json.loads((run / "summary.json").read_text())
    if summary["status"] != "diverged":
        numbers = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()] + [summary]
        wrong += ["a metric is not finite"] if any(not math.isfinite(value) for value in floats(numbers)) else []
    elif "diverged" not in done.out:
        wrong.append("diverged silently")
    if "nan" in done.out.replace("'nan'", "").replace("NaN", "").split():
        wrong.append("nan was printed")
    return wrong


def floats(values: Any) -> Iterator[float]:  # noqa: ANN401 - JSON
    if isinstance(values, float):
        yield values
    for value in values.values() if isinstance(values, dict) else values if isinstance(values, list) else ():
        yield from floats(value)


def wrong_predictions(done: Ended, out: Path | None, case: Case) -> list[str]:
    """What is wrong with predictions: a number that is not finite, or their number."""
    if done.code:
        return []
    predicted = [cells for name, cells in read_predictions(done, out, case).items() if name.startswith(PREDICTED)]
    words = ("nan", "inf", "-inf", "", "None")
    wrong = ["a prediction is not finite"] if any(str(cell) in words for cells in predicted for cell in cells) else []
    if case.rows and (not predicted or len(predicted[0]) != case.rows):
        wrong.append(f"predictions for {len(predicted[0]) if predicted else 0} of {case.rows} rows")
    return wrong


def read_predictions(done: Ended, out: Path | None, case: Case) -> dict[str, list[Any]]:
    """The columns of predictions, called predicted_ and probability_, and those that were kept."""
    if out is not None and out.suffix == ".parquet":
        columns: dict[str, list[Any]] = pyarrow.parquet.read_table(out).to_pydict()
        return columns
    if out is not None and out.suffix == ".npz":
        with np.load(out) as arrays:
            named = {name: np.atleast_2d(arrays[name].T) for name in ("predicted", "probabilities") if name in arrays}
        return {f"predicted_{name}_{i}": list(cells) for name in named for i, cells in enumerate(named[name])}
    text = out.read_text(encoding="utf-8", errors="surrogateescape") if out is not None else done.out
    if out.suffix == ".jsonl" if out is not None else "--json" in case.predict:
        rows = [json.loads(line) for line in text.split("\n") if line]
    else:
        csv.field_size_limit(10**9)
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def in_worker(arguments: list[str], folder: Path, stdin: Path | None) -> Ended:
    return _WORKER.run(arguments, folder=folder, stdin=stdin)


def alone(arguments: list[str], folder: Path, stdin: Path | None) -> Ended:
    return run_forked(arguments, folder=folder, seconds=SECONDS, gigabytes=GIGABYTES, stdin=stdin)


def prepare(scratch: Path) -> None:
    """Train a network on each valid table; rectifiers, because their numbers can overflow."""
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / "models").mkdir(parents=True)
    for table, make in TABLES.items():
        sheet = make(random.Random(table))
        file = scratch / "models" / f"{table}{sheet.suffix}"
        file.write_bytes(sheet.content())
        run = scratch / "models" / table
        train = ("train", str(file), "--folder", str(run), *NETWORK, "--activation", "relu", *sheet.options)
        import_as([train, ("predict", str(run), str(file), "--threads", "1")], scratch)


def trial(scratch: Path, seed: int, number: int) -> dict[str, Any]:
    """Train on a mutated table, and predict for it."""
    case = make_case(seed, number)
    for run in (in_worker, alone):  # again in processes of their own, which nothing that ran before can have disturbed
        checked = check_case(case, scratch / "case", scratch / "models", run)
        wrong = [f"{each['command']}: {reason}" for each in checked for reason in each["wrong"]]
        if not wrong:
            break
    ended = [each["ended"] for each in checked]
    record: dict[str, Any] = {
        "kind": case.table,
        "change": " ".join(case.mutations),
        "ended": [done.code for done in ended],
        "megabytes": max(done.megabytes for done in ended),
    }
    if not wrong:
        return record | {"verdict": "success" if any(done.code == 0 for done in ended) else "clear error"}
    verdict = next((word for word in ("traceback", "hang") if word in " ".join(wrong)), "wrong")
    return record | {"verdict": verdict, "wrong": wrong, "err": "".join(done.err[-1500:] for done in ended)}
