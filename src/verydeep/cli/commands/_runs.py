"""`verydeep runs`: a table of the runs in a folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from verydeep.cli._options import read_options

if TYPE_CHECKING:
    from rich.table import Table

    from verydeep.training import RunInfo

_STYLES = {"training": "cyan", "diverged": "red", "broken": "red"}
_STYLES |= dict.fromkeys(("finished", "stopped early", "pruned"), "green")

_EXPENDABLE = ("age", "parameters", "time", "data", "loss", "depth", "model")  # left out of narrow tables, in order


@dataclass(frozen=True)
class RunsOptions:
    """List runs with their progress, status and accuracy, the latest last."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")] = Path("runs")
    """The folder to list."""
    json: bool = False
    """Print JSON instead of a table."""


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = read_options(RunsOptions, "runs", arguments)
    from verydeep.training import list_runs, list_studies

    runs = list_runs(options.folder)
    if options.json:
        print(json.dumps([asdict(run) for run in runs], indent=1, ensure_ascii=False))
    elif runs:
        _print_table(runs)
    else:
        print(f"no runs in {options.folder}")
    for study in [] if options.json else list_studies(options.folder):
        print(f"{study} is a search: verydeep search show {study}, or verydeep runs {study} for its trials")


def _print_table(runs: list[RunInfo]) -> None:
    from rich.measure import Measurement

    from verydeep.cli._console import console, print_line

    rows = [_cells(run) for run in runs]
    hidden: list[str] = []
    unbounded = console.options.update(max_width=1000)
    for name in _EXPENDABLE:
        if Measurement.get(console, unbounded, _table(rows, hidden)).maximum <= console.width:
            break
        hidden.append(name)
    console.print(_table(rows, hidden))
    if hidden:
        console.print(f"A wider terminal also shows {', '.join(reversed(hidden))}; --json shows everything.")
    for run in runs:
        if run.problem:
            print_line(f"{run.name}: {run.problem}")


def _table(rows: list[dict[str, str]], hidden: list[str]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown = [name for name in rows[0] if name not in hidden]
    for name in shown:
        left = name in ("run", "model", "data", "status")
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    for row in rows:
        style = _STYLES.get(row["status"], "yellow")
        table.add_row(*(Text(row[name], style if name == "status" else "") for name in shown))
    return table


def _cells(run: RunInfo) -> dict[str, str]:
    import time

    from verydeep.training import clock

    known = run.status != "broken"
    return {
        "run": run.name,
        "model": run.model,
        "depth": "" if run.depth is None else str(run.depth),
        "parameters": "" if run.parameters is None else f"{run.parameters:,}",
        "data": run.data,
        "epochs": f"{run.epochs_done}/{run.epochs}" if known else "",
        "status": run.status,
        "loss": "" if run.loss is None else f"{run.loss:.3g}",
        "valid": _percent(run.valid_accuracy),
        "test": _percent(run.test_accuracy),
        "time": clock(run.seconds) if known else "",
        "age": _age(time.time() - run.changed),
    }


def _percent(accuracy: float | None) -> str:
    return "" if accuracy is None else f"{accuracy:.2%}"


def _age(seconds: float) -> str:
    """Format an age with one number and one unit."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(int(seconds), 0)} s"
