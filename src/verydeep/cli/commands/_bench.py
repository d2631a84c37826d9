"""`verydeep bench`: the speed of our networks compared with the same networks in PyTorch, JAX and ONNX Runtime."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from verydeep.cli._options import Json, option, read_options
from verydeep.errors import UserError
from verydeep.terminal import echo

if TYPE_CHECKING:
    from verydeep.bench import BenchTask


@dataclass(frozen=True)
class BenchOptions:
    """Time training steps and inference against PyTorch, torch.compile, JAX and ONNX Runtime on the same cores.

    Each comparison is saved when it is complete; an interrupted bench continues with the next one.
    """

    quick: bool = False
    """Make a few comparisons in a minute or two, without torch.compile; the full bench takes an hour."""
    compile: bool = True
    """Include torch.compile, which needs a C++ compiler and about half a minute per comparison."""
    only: Annotated[str | None, option("TEXT")] = None
    """Measure only comparisons whose name contains TEXT, such as conv, train-highway-d50 or t2; the table shows all."""
    measure: bool = True
    """With --no-measure, only rewrite the table and the figure from earlier measurements."""
    out: Annotated[Path | None, option("FOLDER")] = None
    """The folder for the results; by default, results/bench or results/bench-quick."""
    json: Json = False


OPTIONS = {"bench": BenchOptions}


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = read_options(BenchOptions, "bench", arguments)
    from verydeep.bench import bench_page, bench_table, bench_tasks, load_results, selected_tasks
    from verydeep.files import write_atomic
    from verydeep.report import plot_bench

    folder = options.out or Path("results") / ("bench-quick" if options.quick else "bench")
    everything = bench_tasks(options.quick, options.compile and not options.quick)
    tasks = selected_tasks(everything, options.only)
    if not tasks:
        raise UserError(f"no comparison has '{options.only}' in its name")
    if options.measure:
        _run(tasks, folder / "cases")
    results = load_results(everything, folder / "cases")
    if not results:
        raise UserError(f"{folder} has no measurements yet; leave out --no-measure")
    table = bench_table(results)
    write_atomic(folder / "bench.json", json.dumps(results, indent=1) + "\n")
    write_atomic(folder / "bench.md", bench_page(results))
    plot_bench(results, folder / "bench.png")
    _show(results, table, folder, options.json)


def _run(tasks: list[BenchTask], folder: Path) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from verydeep.bench import run_bench

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        line = bar.add_task("starting", total=len(tasks))
        for task in run_bench(tasks, folder):
            bar.update(line, advance=1, description=task.name)


def _show(results: dict[str, dict[str, Any]], table: str, folder: Path, as_json: bool) -> None:
    if as_json:
        echo(json.dumps(results))
        return
    from rich.markdown import Markdown

    from verydeep.cli._console import console, print_line

    console.print(Markdown(table))
    print_line(f"bench.json, bench.md and bench.png are in {folder}")
