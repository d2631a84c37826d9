"""`verydeep compare`: the settings in which runs differ, what each reached, and their curves."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from verydeep.cli._options import Json, option, positional, read_options
from verydeep.cli._run_options import find_run
from verydeep.cli._status import status
from verydeep.errors import UserError, unknown
from verydeep.terminal import echo

if TYPE_CHECKING:
    from verydeep.training import ComparedRun, RunComparison

# What is drawn: the first that all runs have.
_METRICS = ("valid_accuracy", "valid_r2", "test_accuracy", "test_r2", "train_loss", "loss")
_ALWAYS_KNOWN = tuple(
    f"{split}{name}" for split in ("", "train_", "valid_", "test_") for name in ("loss", "accuracy", "r2")
)
_EXPENDABLE = ("parameters", "data", "depth", "network", "loss", "time", "validation")  # left out of narrow tables


@dataclass(frozen=True)
class CompareOptions:
    """Compare runs: the settings in which they differ, their accuracy, loss and time, and their curves.

    The runs may differ in network and data, and may be unfinished. A folder made with train --seeds counts as one run
    with the mean of its seeds.
    """

    runs: Annotated[tuple[Path, ...], positional("RUN")]
    """The folders of two runs or more."""
    out: Annotated[Path | None, option("FILE.png", aliases=("-o",))] = None
    """Draw the curves into this file (.png, .svg or .pdf)."""
    metric: Annotated[str | None, option("METRIC")] = None
    """Draw this metric, such as test_loss or valid_roc_auc; by default, the validation accuracy (or R2) if all runs
    have one."""
    json: Json = False


OPTIONS = {"compare": CompareOptions}


def main(arguments: list[str]) -> None:
    """Run the command."""
    options = read_options(CompareOptions, "compare", arguments)
    from verydeep.training import compare_runs

    if options.metric is not None and options.out is None:
        raise UserError("--metric is for the picture: add -o FILE.png")
    found = compare_runs(*map(find_run, options.runs))
    if options.out is not None:
        _draw(found, options.out, options.metric)
    if options.json:
        runs = [asdict(run) | {"metrics": [line.to_dict() for line in run.metrics]} for run in found.runs]
        echo(json.dumps({"runs": runs, "settings": found.settings}, indent=1, ensure_ascii=False))
        return
    _print_runs(found)
    _print_settings(found)
    if options.out is not None:
        echo(f"the curves are in {options.out}")


def _print_runs(found: RunComparison) -> None:
    from rich.text import Text

    from verydeep.cli._console import console, print_columns

    rows = [{name: Text(cell) for name, cell in _cells(run).items()} for run in found.runs]
    hidden = print_columns(rows, ("run", "network", "data", "status"), _EXPENDABLE)
    if hidden:
        console.print(f"A wider terminal also shows {', '.join(reversed(hidden))}.", highlight=False)
    if any(len(run.seeds) > 1 for run in found.runs):
        console.print("Numbers of several seeds are means ± standard deviation.", highlight=False)


def _cells(run: ComparedRun) -> dict[str, str]:
    from verydeep.training import clock
    from verydeep.words import named_score, score

    show = score if run.measure == "accuracy" else named_score
    spread = "" if run.test_accuracy_std is None else f" ± {score(run.measure, run.test_accuracy_std)}"
    seeds = f" ({len(run.seeds)} seeds)" if len(run.seeds) > 1 else ""
    return {
        "run": f"{run.name}{seeds}",
        "network": run.model,
        "depth": "" if run.depth is None else str(run.depth),
        "parameters": "" if run.parameters is None else f"{run.parameters:,}",
        "data": run.data,
        "epochs": f"{run.epochs_done}/{run.epochs}",
        "status": run.status,
        "loss": "" if run.loss is None else f"{run.loss:.3g}",
        "validation": "" if run.valid_accuracy is None else show(run.measure, run.valid_accuracy),
        "test": "" if run.test_accuracy is None else show(run.measure, run.test_accuracy) + spread,
        "time": clock(run.seconds),
    }


def _print_settings(found: RunComparison) -> None:
    """Print a column per run if that fits, or a few lines per setting."""
    from rich.text import Text

    from verydeep.cli._console import columns_width, console, print_columns, print_line

    if not found.settings:
        echo("\nall settings are equal")
        return
    names = short_names([run.name for run in found.runs])
    rows = [
        {"setting": Text(setting)} | dict(zip(names, (Text(_shown(v)) for v in values), strict=True))
        for setting, values in found.settings.items()
    ]
    echo()
    if columns_width(rows) <= console.width:
        print_columns(rows, ("setting", *names), ())
        return
    for row in rows:
        print_line(str(row.pop("setting")))
        for name, value in row.items():
            print_line(f"  {name}: {value}")


def short_names(names: list[str]) -> list[str]:
    """The names of folders without the folders that all are in; names that are given twice are numbered."""
    parts = [Path(name).parts for name in names]
    while all(len(part) > 1 for part in parts) and len({part[0] for part in parts}) == 1:
        parts = [part[1:] for part in parts]
    short = ["/".join(part) for part in parts]
    return [name if short.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(short, 1)]


def _shown(value: Any) -> str:  # noqa: ANN401 - of any setting
    if value is None or value == []:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return ",".join(map(_shown, value)) if isinstance(value, list) else str(value)


def _draw(found: RunComparison, path: Path, metric: str | None) -> None:
    drawn = [run for run in found.runs if run.metrics]
    if not drawn:
        raise UserError("no run has completed an epoch yet, so there are no curves to draw")
    names = dict(zip([run.name for run in found.runs], short_names([run.name for run in found.runs]), strict=True))
    if metric is None:
        shared = [
            name for name in _METRICS if all(any(line.get(name) is not None for line in run.metrics) for run in drawn)
        ]
        metric = shared[0] if shared else "loss"
    else:
        lines = [line for run in drawn for line in run.metrics]
        known = dict.fromkeys(name for line in lines for name in line.to_dict() if line.get(name) is not None)
        if metric not in (*known, *_ALWAYS_KNOWN):
            raise unknown("metric of these runs", metric, [name for name in known if name != "epoch"])
        if metric not in known:
            raise UserError(f"none of these runs has measured {metric}, so there is nothing to draw")
    with status("drawing the curves"):
        from verydeep.report import plot_curves

        curves = {names[run.name]: list(run.metrics) for run in drawn}
        plot_curves(curves, path, metric=metric, log=metric in ("lr", "seconds") or metric.endswith("loss"))
