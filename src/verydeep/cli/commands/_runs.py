"""`verydeep runs`: a table of the runs in a folder; or remove runs."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from verydeep.cli._options import Json, option, positional, read_options
from verydeep.errors import UserError
from verydeep.terminal import echo

if TYPE_CHECKING:
    from verydeep.training import RunInfo

STYLES = {"training": "cyan", "diverged": "red", "broken": "red"}
STYLES |= dict.fromkeys(("finished", "stopped early", "pruned"), "green")

_EXPENDABLE = ("age", "parameters", "time", "data", "loss", "depth", "model", "validation")  # left out of narrow tables


@dataclass(frozen=True)
class RunsOptions:
    """List runs with their progress, status and accuracy (R2 of a regression), the latest last; or remove runs."""

    folder: Annotated[Path, positional("FOLDER")] = Path("runs")
    """The folder to list."""
    remove: Annotated[tuple[str, ...], option("RUN,...")] = ()
    """Delete these runs, named as in the list or by their folders, after asking on the terminal."""
    yes: bool = False
    """With --remove, delete without asking."""
    json: Json = False


OPTIONS = {"runs": RunsOptions}


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = read_options(RunsOptions, "runs", arguments)
    if options.remove:
        return _remove(options)
    if "--remove" in arguments or options.yes:
        raise UserError("name the runs to remove: verydeep runs --remove RUN")
    from verydeep.training import list_runs, list_studies

    runs = list_runs(options.folder)
    if options.json:
        echo(json.dumps([asdict(run) for run in runs], indent=1, ensure_ascii=False))
    elif runs:
        _print_table(runs)
    else:
        echo(f"no runs in {options.folder}")
    for study in [] if options.json else list_studies(options.folder):
        name = quote(str(study))
        echo(f"{study} is a search: verydeep search show {name}, or verydeep runs {name} for its trials")
    return 0


def _remove(options: RunsOptions) -> int:
    from verydeep.training import check_removable, remove_run

    paths = [_inside(name, options.folder) for name in options.remove]
    runs = {path: len(check_removable(path)) for path in dict.fromkeys(paths)}
    if not options.yes:
        if not sys.stdin.isatty():
            raise UserError("--remove asks for confirmation; without a terminal, add --yes")
        for path, count in runs.items():
            echo(f"{path}{f' ({count} runs)' if count > 1 else ''}")
        if input("Delete with everything inside? [y/N] ").strip().lower() not in ("y", "yes"):
            echo("nothing was removed")
            return 0
    for path in runs:
        remove_run(path)
        echo(f"removed {path}")
    return 0


def _inside(name: str, folder: Path) -> Path:
    """The folder of a run that is named as in the list, or by its path; it must be inside the listed folder."""
    path = next((path for path in (folder / name, Path(name)) if path.exists()), folder / name)
    if folder.resolve() not in path.absolute().resolve().parents:
        raise UserError(f"{path} is not inside {folder}; also give the folder: verydeep runs FOLDER --remove {name}")
    return path


def _print_table(runs: list[RunInfo]) -> None:
    from rich.text import Text

    from verydeep.cli._console import console, print_columns, print_line

    rows = []
    for run in runs:
        style = STYLES.get(run.status, "yellow")
        rows.append({name: Text(cell, style if name == "status" else "") for name, cell in _cells(run).items()})
    hidden = print_columns(rows, ("run", "model", "data", "status"), _EXPENDABLE)
    if hidden:
        console.print(f"A wider terminal also shows {', '.join(reversed(hidden))}; --json shows everything.")
    for run in runs:
        if run.problem:
            print_line(f"{run.name}: {run.problem}")


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
        "validation": _score(run.measure, run.valid_accuracy),
        "test": _score(run.measure, run.test_accuracy),
        "time": clock(run.seconds) if known else "",
        "age": _age(time.time() - run.changed),
    }


def _score(measure: str, value: float | None) -> str:
    """Format an accuracy as a percentage; another score has its name, because the column does not say which it is."""
    from verydeep.words import named_score, score

    if value is None:
        return ""
    return score(measure, value) if measure == "accuracy" else named_score(measure, value)


def _age(seconds: float) -> str:
    """Format an age with one number and one unit."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(int(seconds), 0)} s"
