"""Mutated tables through `verydeep train` and `verydeep predict`: `python benchmarks/mutated_tables.py`.

Every case starts from one of a few valid tables (classification, regression, labels; CSV, TSV, Parquet), mutates cells,
rows, columns, headers, quoting, encodings and bytes, and draws options. A small network is trained on the mutated
table, and a network that was trained on the valid one predicts for it. A command may succeed, or print one line that
starts with `verydeep:` and exit with 2. Everything else is a failure: a traceback, another exit code, several lines, a
crash, a hang, a number that is not finite, a file that is left behind. The exit code is 1 if any case fails.

    python benchmarks/mutated_tables.py                    10,000 tables in forked processes
    python benchmarks/mutated_tables.py --commands         200 tables, each command in a process of its own
    python benchmarks/mutated_tables.py --first 17 --tables 1    case 17 once more, with all it prints
"""

import argparse
import contextlib
import csv
import io
import json
import math
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv  # type: ignore[import-untyped]  # imported before the fork
import pyarrow.parquet  # type: ignore[import-untyped]
import sklearn.preprocessing  # noqa: F401 - imported before the fork, because every training needs it
import torch._dynamo  # noqa: F401 - the first step of an optimiser needs it
from _mutations import TABLES, Case, make_case
from _result import write_result

import verydeep
from verydeep.cli import main as verydeep_main
from verydeep.cli.commands import _predict, _train  # noqa: F401 - imported before the fork
from verydeep.processes import python_command

RESULTS = Path(__file__).parents[1] / "results" / "benchmarks"
NETWORK = ["--depth", "3", "--width", "4", "--epochs", "1", "--threads", "1"]
HANGS = 120  # seconds after which a case counts as a hang
CASES_PER_WORKER = 1000
PREDICTED = ("predicted_", "probability_")
LONGEST = 1500  # characters of a message


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


Runner = Callable[[list[str], Path | None], Done]


def check_case(case: Case, folder: Path, models: Path, run: Runner, commands: tuple[str, ...]) -> list[dict[str, Any]]:
    """Run the commands on a mutated table and describe what is wrong with each of them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    file = folder / case.file
    file.write_bytes(case.content)
    checked = []
    for command in commands:
        if command == "train":
            arguments = ["train", str(file), "--folder", str(folder / "run"), *NETWORK, *case.train]
            done = run(arguments, None)
            wrong = [*wrong_end(done, folder), *wrong_run(done, folder / "run")]
        else:
            new = "-" if case.out == "-" else str(file)
            out = folder / case.out if case.out.startswith("out") else None
            arguments = ["predict", str(models / case.table), new, *case.predict, *(["-o", str(out)] if out else [])]
            done = run([*arguments, "--threads", "1"], file if new == "-" else None)
            wrong = [*wrong_end(done, folder), *wrong_predictions(done, out, case)]
        expected = {case.file, "run" if command == "train" else case.out} if done.code == 0 else {case.file}
        left = sorted({each.name for each in folder.iterdir()} - expected)
        wrong += [f"left behind: {name}" for name in left]
        shutil.rmtree(folder / "run", ignore_errors=True)
        checked.append(
            {"command": command, "code": done.code, "wrong": wrong, "kind": message_kind(done, folder), "err": done.err}
        )
    return checked


def wrong_end(done: Done, folder: Path) -> list[str]:
    """What is wrong with an exit code and with what was printed to standard error."""
    lines = done.err.removesuffix("\n").split("\n") if done.err else []
    notes = [line for line in lines if re.match(r"verydeep: (note:|the columns? .* will not be used$)", line)]
    errors = [line for line in lines if line not in notes]
    wrong = []
    if done.code not in (0, 2):
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


def wrong_run(done: Done, run: Path) -> list[str]:
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


def wrong_predictions(done: Done, out: Path | None, case: Case) -> list[str]:
    """What is wrong with predictions: a number that is not finite, or their number."""
    if done.code:
        return []
    predicted = [cells for name, cells in read_predictions(done, out, case).items() if name.startswith(PREDICTED)]
    words = ("nan", "inf", "-inf", "", "None")
    wrong = ["a prediction is not finite"] if any(str(cell) in words for cells in predicted for cell in cells) else []
    if case.rows and (not predicted or len(predicted[0]) != case.rows):
        wrong.append(f"predictions for {len(predicted[0]) if predicted else 0} of {case.rows} rows")
    return wrong


def read_predictions(done: Done, out: Path | None, case: Case) -> dict[str, list[Any]]:
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


def message_kind(done: Done, folder: Path) -> str:
    """The kind of the last line on standard error: without names and numbers."""
    if done.code == 0:
        return "success"
    line = (done.err.strip().split("\n") or [""])[-1].removeprefix("verydeep: ")
    line = re.sub(r"\S*" + re.escape(str(folder)) + r"\S*?(?=[:;,]? |[:;,]?$)", "FILE", line)
    line = re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", "X", line)
    line = re.sub(r"X(, X)+( and \d+ more)?", "X", re.sub(r"-?\d[\d,.e+%-]*", "N", line))
    return line[:110]


# Processes


def in_this_process(folder: Path) -> Runner:
    """Run commands in this process, with standard streams that are files."""
    files = {number: (folder / f"stream{number}").open("w+b") for number in (1, 2)}
    for number, file in files.items():
        os.dup2(file.fileno(), number)
    sys.stdout, sys.stderr = (open(n, "w", encoding="utf-8", closefd=False) for n in (1, 2))  # noqa: SIM115
    sys.stderr.reconfigure(errors="backslashreplace", line_buffering=True)

    def run(arguments: list[str], stdin: Path | None) -> Done:
        for number in files:
            os.ftruncate(number, 0)
            os.lseek(number, 0, os.SEEK_SET)
        descriptor = os.open(stdin or os.devnull, os.O_RDONLY)
        os.dup2(descriptor, 0)
        os.close(descriptor)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        try:
            with warnings.catch_warnings():  # forgets which warnings were shown before
                code = verydeep_main(arguments)
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except BaseException:  # it is recorded
            code = 1
            traceback.print_exc()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, UnicodeError):
                stream.flush()
        printed = [(folder / f"stream{number}").read_bytes().decode(errors="surrogateescape") for number in files]
        return Done(code, *printed)

    return run


def as_command(arguments: list[str], stdin: Path | None) -> Done:
    """Run a real command."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(verydeep.__file__).parents[1])}
    command = python_command("-m", "verydeep", *arguments)
    with open(stdin or os.devnull, "rb") as file:
        try:
            done = subprocess.run(command, stdin=file, capture_output=True, env=environment, timeout=HANGS, check=False)
        except subprocess.TimeoutExpired:
            return Done(-1, "", "hangs")
    return Done(done.returncode, *(stream.decode(errors="surrogateescape") for stream in (done.stdout, done.stderr)))


def train_models(models: Path) -> None:
    """Train a network on each valid table, in a forked process; the numbers of rectifiers can overflow."""
    models.mkdir()
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        if status:
            raise SystemExit((models / "stream2").read_text())
        return
    run = in_this_process(models)
    for table, make in TABLES.items():
        sheet = make(random.Random(table))
        file = models / f"{table}{sheet.suffix}"
        file.write_bytes(sheet.content())
        if run(
            ["train", str(file), "--folder", str(models / table), *NETWORK, "--activation", "relu", *sheet.options],
            None,
        ).code:
            os._exit(1)
    os._exit(0)


def work(write: int, seed: int, numbers: range, scratch: Path, commands: tuple[str, ...]) -> None:
    """Check cases in a forked process; each result is a line of JSON."""
    folder = scratch / f"worker-{os.getpid()}"
    folder.mkdir()
    run = in_this_process(folder)
    for number in numbers:
        case = make_case(seed, number)
        checked = check_case(case, folder / "case", scratch / "models", run, commands)
        record = {"number": number, "table": case.table, "mutations": case.mutations, "checked": checked}
        with open(write, "a", encoding="utf-8", closefd=False) as file:
            file.write(json.dumps(record) + "\n")
    shutil.rmtree(folder)


def forked(seed: int, numbers: range, scratch: Path, commands: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Check cases in forked processes, one at a time; a case that ends its process, or hangs, is a failure."""
    at = numbers.start
    while at < numbers.stop:
        part = range(at, min(at + CASES_PER_WORKER, numbers.stop))
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(read)
                work(write, seed, part, scratch, commands)
                code = 0
            except BaseException:  # a mistake in this file
                with (scratch / "mistake").open("w") as file:
                    traceback.print_exc(file=file)
            os._exit(code)
        os.close(write)
        ending = ""
        with open(read, "rb") as file:
            buffer = b""
            while True:
                if not select.select([file], [], [], HANGS)[0]:
                    os.kill(pid, signal.SIGKILL)
                    ending = "hangs"
                    break
                received = os.read(file.fileno(), 1 << 16)
                buffer += received
                *lines, buffer = buffer.split(b"\n")
                for line in lines:
                    yield json.loads(line)
                    at += 1
                if not received:
                    break
        _, status = os.waitpid(pid, 0)
        if (scratch / "mistake").exists():
            raise SystemExit((scratch / "mistake").read_text())
        if at < part.stop:
            ending = ending or f"ended with {os.waitstatus_to_exitcode(status)}"
            case = make_case(seed, at)
            checked = [{"command": "/".join(commands), "code": -1, "wrong": [ending], "kind": ending, "err": ""}]
            yield {"number": at, "table": case.table, "mutations": case.mutations, "checked": checked}
            at += 1


def real_commands(seed: int, numbers: range, scratch: Path) -> Iterator[dict[str, Any]]:
    """Check cases with real commands: `train` for every second case, `predict` for the others."""
    for number in numbers:
        case = make_case(seed, number)
        command = ("train", "predict")[number % 2]
        checked = check_case(case, scratch / "case", scratch / "models", as_command, (command,))
        yield {"number": number, "table": case.table, "mutations": case.mutations, "checked": checked}


def summarise(records: list[dict[str, Any]]) -> dict[str, Any]:
    checked = [each for record in records for each in record["checked"]]
    result: dict[str, Any] = {"tables": len(records), "by_table": dict(Counter(r["table"] for r in records))}
    result["mutations"] = dict(
        Counter(name.split("=")[0] for record in records for name in record["mutations"]).most_common()
    )
    for command in sorted({each["command"] for each in checked}):
        own = [each for each in checked if each["command"] == command]
        kinds = Counter(each["kind"] for each in own if each["code"] != 0)
        result[command] = {
            "succeeded": sum(each["code"] == 0 for each in own),
            "one_line_error": sum(each["code"] == 2 and not each["wrong"] for each in own),
            "failed": sum(bool(each["wrong"]) for each in own),
            "kinds_of_messages": len(kinds),
            "messages": dict(kinds.most_common(60)),
        }
    result["failures"] = [
        {"number": record["number"], "table": record["table"], "mutations": record["mutations"]} | each
        for record in records
        for each in record["checked"]
        if each["wrong"]
    ][:50]
    return result


def measure(seed: int, numbers: range, commands: bool, only: tuple[str, ...] = ("train", "predict")) -> dict[str, Any]:
    records = []
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        train_models(scratch / "models")
        start = time.monotonic()
        stream = real_commands(seed, numbers, scratch) if commands else forked(seed, numbers, scratch, only)
        for record in stream:
            records.append(record)
            for each in record["checked"]:
                if each["wrong"]:
                    print(record["number"], each["command"], *each["wrong"], each["err"][-1500:], sep="; ", flush=True)
                elif len(numbers) == 1:
                    print(make_case(seed, record["number"]), each["command"], each["code"], each["err"], sep="\n")
            if len(records) % (20 if commands else 500) == 0:
                print(f"{len(records)} of {len(numbers)} after {time.monotonic() - start:.0f} s", flush=True)
        seconds = time.monotonic() - start
    return summarise(records) | {"seconds": round(seconds)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, help="by default 10,000, or 200 with --commands")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--commands", action="store_true", help="a process of its own for each command")
    parser.add_argument("--seed", type=int, default=0, help="seed of the mutations")
    parser.add_argument("--out", type=Path, help="the result, by default under results/benchmarks")
    options = parser.parse_args()
    count = options.tables or (200 if options.commands else 10_000)
    result = measure(options.seed, range(options.first, options.first + count), options.commands)
    how = (
        "real commands, train and predict by turns" if options.commands else "forked processes, train and predict each"
    )
    default = RESULTS / ("mutated-tables-commands.json" if options.commands else "mutated-tables.json")
    if count > 1:
        write_result(
            options.out or default,
            {"what": f"mutated tables in {how}: success or one line?", "seed": options.seed} | result,
        )
    failed = len(result["failures"])
    ended = {
        name: {k: result[name][k] for k in ("succeeded", "one_line_error", "failed")}
        for name in ("train", "predict")
        if name in result
    }
    print(f"{count} tables in {result['seconds']} s: {ended}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
