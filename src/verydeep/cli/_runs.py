"""`verydeep runs`: a table of runs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from verydeep.training import RunInfo

_STYLES = {"training": "cyan", "finished": "green", "stopped early": "green", "diverged": "red", "broken": "red"}


@dataclass(frozen=True)
class Runs:
    """List runs, the latest last: how far they are, how they ended, what they reached."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")] = Path("runs")
    """Where to look."""
    json: bool = False
    """Print JSON instead of a table."""


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = tyro.cli(Runs, prog="verydeep runs", args=arguments)
    from verydeep.training import list_runs

    runs = list_runs(options.folder)
    if options.json:
        print(json.dumps([asdict(run) for run in runs], indent=1, ensure_ascii=False))
    elif runs:
        _print_table(runs)
    else:
        print(f"no runs in {options.folder}")


def _print_table(runs: list[RunInfo]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from verydeep.cli._console import console

    table = Table()
    for name in (
        "run",
        "model",
        "depth",
        "parameters",
        "data",
        "epochs",
        "status",
        "loss",
        "valid",
        "test",
        "time",
        "age",
    ):
        left = name in ("run", "model", "data", "status")
        table.add_column(name, justify="left" if left else "right", overflow="fold")
    for run in runs:
        cells = [escape(cell) for cell in _cells(run)]
        cells[6] = f"[{_STYLES.get(run.status, 'yellow')}]{cells[6]}[/]"
        table.add_row(*cells)
    console.print(table)
    for run in runs:
        if run.problem:
            console.print(f"{run.name}: {run.problem}", highlight=False, markup=False, soft_wrap=True)


def _cells(run: RunInfo) -> list[str]:
    import time

    from verydeep.training import clock

    age = _age(time.time() - run.changed)
    if run.status == "broken":
        return [run.name, *[""] * 5, run.status, *[""] * 4, age]
    return [
        run.name,
        run.model,
        "" if run.depth is None else str(run.depth),
        "" if run.parameters is None else f"{run.parameters:,}",
        run.data,
        f"{run.epochs_done}/{run.epochs}",
        run.status,
        "" if run.loss is None else f"{run.loss:.3g}",
        _percent(run.valid_accuracy),
        _percent(run.test_accuracy),
        clock(run.seconds),
        age,
    ]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.2%}"


def _age(seconds: float) -> str:
    """As people say it: one number, one unit."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(int(seconds), 0)} s"
