"""The cost of reading tables: `python benchmarks/reading.py`.

Each measurement runs in a process of its own and reports the processor time of all its threads, which other load on the
machine hardly changes, and by how much its peak memory exceeds that before. Libraries are imported before. The aims: a
table of 500,000 x 22 (18 columns of numbers, one of them with gaps, and 3 of text) is read and prepared in at most 2 s
with pyarrow and 8 s without, and 100,000 columns take seconds, not minutes.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from verydeep.data import Inputs, TableOptions, TablePreparation, iterate_tables, load_dataset
from verydeep.processes import python_command

OUT = Path(__file__).parents[1] / "results" / "benchmarks" / "reading.json"
ROWS, COLUMNS, REPEATS = 500_000, 100_000, 2


def write_tall(path: Path) -> None:
    """500,000 x 22 as CSV and as Parquet."""
    random = np.random.default_rng(0)
    numbers = {f"x{i}": np.char.mod("%.6g", random.normal(size=ROWS) * 10 ** (i % 4)) for i in range(14)}
    numbers["gaps"] = np.where(random.random(ROWS) < 0.05, "", np.char.mod("%.4f", random.normal(size=ROWS)))
    integers = {f"i{i}": random.integers(0, 1000, ROWS).astype(str) for i in range(3)}
    words = {f"c{i}": np.char.mod("value %d", random.integers(0, 5 * i, ROWS)) for i in range(1, 4)}
    columns = numbers | integers | words | {"y": random.integers(0, 3, ROWS).astype(str)}
    with path.open("w") as file:
        file.write(",".join(columns) + "\n")
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        file.writelines(",".join(row) + "\n" for row in rows)
    pandas = import_module("pandas")
    pandas.read_csv(path).to_parquet(path.with_suffix(".parquet"))


def write_wide(path: Path) -> None:
    """20 rows of 100,000 numbers."""
    random = np.random.default_rng(0)
    with path.open("w") as file:
        file.write(",".join([*(f"x{i}" for i in range(COLUMNS)), "y"]) + "\n")
        for row in range(20):
            file.write(",".join([*np.char.mod("%.4f", random.normal(size=COLUMNS)).tolist(), str(row % 2)]) + "\n")


def predict_in_parts(path: Path) -> None:
    """Prepare all rows part by part, as predictions do."""
    inputs = Inputs.of(load_dataset(path.with_name("sample.csv")))
    assert isinstance(inputs.preparation, TablePreparation)
    for table in iterate_tables(path, TableOptions(text=inputs.preparation.text_columns), rows=10_000):
        inputs.preparation(table)


def peak_memory() -> float:
    """The peak memory of this process in MB; `getrusage` would count that of its parent, too."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


def measure(name: str, folder: Path) -> dict[str, Any]:
    """Run one measurement in this process."""
    for library in ("pandas", "pyarrow.csv", "pyarrow.parquet", "pyarrow.compute", "sklearn.preprocessing", "torch"):
        import_module(library)
    if "without pyarrow" in name:
        import_module("verydeep.data.own._csv_pyarrow").find_spec = lambda _name: None
    work, before = WORK[name](folder), peak_memory()
    start, wall = time.process_time(), time.perf_counter()
    work()
    return {
        "cpu_s": round(time.process_time() - start, 2),
        "wall_s": round(time.perf_counter() - wall, 2),
        "memory_mb": round(peak_memory() - before),
    }


WORK: dict[str, Callable[[Path], Callable[[], Any]]] = {
    "500,000 x 22, CSV": lambda folder: partial(load_dataset, folder / "tall.csv"),
    "500,000 x 22, CSV without pyarrow": lambda folder: partial(load_dataset, folder / "tall.csv"),
    "500,000 x 22, Parquet": lambda folder: partial(load_dataset, folder / "tall.parquet"),
    "500,000 x 22, CSV, only pandas.read_csv": lambda folder: partial(
        import_module("pandas").read_csv, folder / "tall.csv"
    ),
    "500,000 x 22, CSV, in parts of 10,000 rows": lambda folder: partial(predict_in_parts, folder / "tall.csv"),
    "500,000 x 22, CSV without pyarrow, in parts of 10,000 rows": lambda folder: partial(
        predict_in_parts, folder / "tall.csv"
    ),
    "20 x 100,000, CSV": lambda folder: partial(load_dataset, folder / "wide.csv"),
}


def in_own_process(name: str, folder: Path) -> dict[str, Any]:
    command = python_command(__file__, name, str(folder))
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    if len(sys.argv) == 3:
        print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]))))
        return
    from _result import write_result  # not at the top, because children are started without this folder

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_tall(folder / "tall.csv")
        write_wide(folder / "wide.csv")
        with (folder / "tall.csv").open() as file, (folder / "sample.csv").open("w") as sample:
            sample.writelines(line for line, _ in zip(file, range(5000), strict=False))
        size = round((folder / "tall.csv").stat().st_size / 2**20)
        measured = {}
        for name in WORK:
            runs = [in_own_process(name, folder) for _ in range(REPEATS)]
            measured[name] = min(runs, key=lambda run: float(run["cpu_s"]))
            print(name, measured[name])
    what = "reading and preparing tables: processor time of all threads, wall time, growth of peak memory"
    write_result(OUT, {"what": what, "csv_mb": size, "best_of": REPEATS, "measured": measured})


if __name__ == "__main__":
    main()
