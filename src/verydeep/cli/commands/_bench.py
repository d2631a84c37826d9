"""`verydeep bench`: our networks against the same ones in PyTorch and JAX, on this machine."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from verydeep.cli._options import read_options
from verydeep.errors import UserError

if TYPE_CHECKING:
    from verydeep.bench import BenchTask


@dataclass(frozen=True)
class BenchOptions:
    """Measure training steps and inference against eager PyTorch, torch.compile and JAX on the same cores.

    Every comparison is kept as it comes: an interrupted bench continues where it was.
    """

    quick: bool = False
    """A few comparisons in a minute or two, without torch.compile; the whole bench takes an hour."""
    compile: bool = True
    """Whether torch.compile takes part: it needs a C++ compiler, and about half a minute for every comparison."""
    only: Annotated[str | None, tyro.conf.arg(metavar="TEXT")] = None
    """Measure only what has this in its name: conv, train-highway-d50, t2, ...; the table has all there is."""
    measure: bool = True
    """With --no-measure, only table and picture are written again, from what has been measured."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where the results go; results/bench or results/bench-quick unless given."""
    json: bool = False
    """Print JSON instead of a table."""


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = read_options(BenchOptions, "bench", arguments)
    from verydeep.bench import bench_table, bench_tasks, load_results, selected_tasks
    from verydeep.files import write_atomic
    from verydeep.report import plot_bench

    folder = options.out or Path("results") / ("bench-quick" if options.quick else "bench")
    everything = bench_tasks(options.quick, options.compile and not options.quick)
    tasks = selected_tasks(everything, options.only)
    if not tasks:
        raise UserError(f"nothing that is measured has '{options.only}' in its name")
    if options.measure:
        _run(tasks, folder / "cases")
    results = load_results(everything, folder / "cases")
    if not results:
        raise UserError(f"{folder}: nothing has been measured yet; leave out --no-measure")
    table = bench_table(results)
    write_atomic(folder / "bench.json", json.dumps(results, indent=1) + "\n")
    write_atomic(folder / "bench.md", _heading(results) + table)
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


def _heading(results: dict[str, dict[str, Any]]) -> str:
    """The machine and versions, of the last result."""
    last = max(results.values(), key=lambda result: str(result["date"]))
    facts = last["environment"]
    names = ("processor", "cores", "system", "python", "torch", "verydeep", "git")
    return f"{last['date'][:10]}: " + ", ".join(f"{name} {facts[name]}" for name in names) + f"; {facts['command']}\n\n"


def _show(results: dict[str, dict[str, Any]], table: str, folder: Path, as_json: bool) -> None:
    if as_json:
        print(json.dumps(results))
        return
    from rich.markdown import Markdown

    from verydeep.cli._console import console

    console.print(Markdown(table))
    console.print(f"bench.json, bench.md and bench.png are in {folder}", highlight=False, markup=False, soft_wrap=True)
