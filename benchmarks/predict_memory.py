"""Memory and time of `verydeep predict` and `verydeep train` for tables of millions of rows.

    python benchmarks/predict_memory.py                       five million rows
    python benchmarks/predict_memory.py --only parquet        measures this again
    python benchmarks/predict_memory.py --rows 100000 --out FILE.json

The table has an identifier, eight numbers (one with gaps), two categories (one with gaps) and two classes. A network is
trained on the first 20,000 rows and predicts for the first tenth and for all rows of a CSV file, of the same CSV
through a pipe, and of a Parquet file, into a CSV file with `--keep id`. Then a network is trained on all rows for one
epoch. All commands use one thread. The memory is the peak of the process: `resident_mb` includes pages of files that
the system can take back at any time, `anonymous_mb` (sampled ten times per second) does not.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from _result import write_result

import verydeep
from verydeep.processes import python_command

ROOT = Path(__file__).parents[1]
BLOCK = 250_000
FORMS = ["csv", "parquet", "pipe", "train"]


def table(rows: int, first: int) -> pa.Table:
    """Some rows of the table; the same rows for the same arguments."""
    random = np.random.default_rng(first)
    numbers = random.normal(50, 10, (rows, 8)).round(3)
    colours = np.array(["red", "green", "blue", "yellow"])[random.integers(0, 4, rows)]
    score = numbers[:, 0] - numbers[:, 1] + 10 * (colours == "red") + random.normal(0, 5, rows)
    columns = {"id": pa.array(np.arange(first, first + rows))}
    columns |= {f"n{i}": pa.array(numbers[:, i]) for i in range(7)}
    columns["n7"] = pa.array(numbers[:, 7], mask=random.random(rows) < 0.1)
    columns["colour"] = pa.array(colours, mask=random.random(rows) < 0.1)
    columns["town"] = pa.array([f"town {i}" for i in random.integers(0, 30, rows)])
    columns["label"] = pa.array(np.where(score > 0, "high", "low"))
    return pa.table(columns)


def write_tables(folder: Path, name: str, rows: int) -> None:
    schema = table(1, 0).schema
    with (
        pyarrow.csv.CSVWriter(folder / f"{name}.csv", schema) as text,
        pyarrow.parquet.ParquetWriter(folder / f"{name}.parquet", schema) as columns,
    ):
        for first in range(0, rows, BLOCK):
            part = table(min(BLOCK, rows - first), first)
            text.write_table(part)
            columns.write_table(part)


def anonymous(pid: int) -> int:
    """Memory of a process that is not backed by a file, in kB."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)


def measure(*arguments: str, stdin: Path | None = None) -> dict[str, Any]:
    environment = os.environ | {"PYTHONPATH": str(Path(verydeep.__file__).parents[1])}
    start, peak = time.perf_counter(), 0
    feeder = None if stdin is None else subprocess.Popen(["cat", str(stdin)], stdout=subprocess.PIPE)
    process = subprocess.Popen(
        python_command("-m", "verydeep", *arguments), env=environment, stdin=feeder.stdout if feeder else None
    )
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        peak = max(peak, anonymous(process.pid))
        time.sleep(0.1)
    process.returncode = os.waitstatus_to_exitcode(status)
    if feeder:
        assert feeder.stdout is not None
        feeder.stdout.close()
        feeder.wait()
    if process.returncode:
        raise SystemExit(f"verydeep {' '.join(arguments)} failed")
    return {
        "resident_mb": round(usage.ru_maxrss / 1000),
        "anonymous_mb": round(peak / 1000),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "seconds": round(time.perf_counter() - start, 1),
    }


def count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(2**20), b""))


def predict(folder: Path, form: str, name: str, rows: int) -> dict[str, Any]:
    source, out = folder / (f"{name}.parquet" if form == "parquet" else f"{name}.csv"), folder / "out.csv"
    new = "-" if form == "pipe" else str(source)
    arguments = ["predict", str(folder / "run"), new, "-o", str(out), "--keep", "id", "--threads", "1"]
    result = measure(*arguments, stdin=source if form == "pipe" else None)
    assert count_lines(out) == rows + 1
    return {"command": "predict", "form": form, "rows": rows, "file_mb": round(source.stat().st_size / 1e6)} | result


def train(folder: Path, name: str, rows: int, *settings: str) -> dict[str, Any]:
    source = folder / f"{name}.csv"
    network = ["--target", "label", "--ignore", "id", "--depth", "10", "--width", "32", "--threads", "1", "--quiet"]
    result = measure("train", str(source), *network, "--folder", str(folder / "run"), *settings)
    return {"command": "train", "form": "csv", "rows": rows, "file_mb": round(source.stat().st_size / 1e6)} | result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--only", nargs="*", choices=FORMS, default=FORMS, help="the others are kept from --out")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "benchmarks" / "predict-memory.json")
    options = parser.parse_args()
    before = json.loads(options.out.read_text())["measured"] if options.only != FORMS else []
    measured = [row for row in before if (row["form"] if row["command"] == "predict" else "train") not in options.only]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        sizes = {"small": 20_000, "tenth": options.rows // 10, "all": options.rows}
        for name, rows in sizes.items():
            write_tables(folder, name, rows)
        train(folder, "small", sizes["small"], "--epochs", "2")
        for form in options.only:
            if form == "train":
                shutil.rmtree(folder / "run")
                settings = ["--epochs", "1", "--batch-size", "1000", "--lr", "0.1"]
                found = [train(folder, "all", sizes["all"], *settings)]
            else:
                found = [predict(folder, form, name, sizes[name]) for name in ("tenth", "all")]
            print(*found, sep="\n", flush=True)
            measured += found
    write_result(options.out, {"network": "highway-mlp, depth 10, width 32", "measured": measured})


if __name__ == "__main__":
    main()
