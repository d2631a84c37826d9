"""`verydeep reproduce`: train what the paper's Figure 1, tables and statements need, and write what was measured."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from verydeep.cli._options import DataRoot, option, positional, read_options
from verydeep.cli._status import load_torch
from verydeep.cli._study_options import ArtifactFolder, Heartbeat, Storage, check_study_options, storage_address
from verydeep.errors import UserError, unknown
from verydeep.files import write_atomic
from verydeep.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verydeep.paper import Fig1, StudyOptions, TableResult, Tables
    from verydeep.report import TableCurves

_TABLES = ("table1", "table2", "table3")
_WHAT = ("fig1", *_TABLES, "claims", "all")
_MOST_SEEDS = 1000
# Columns that a narrow terminal has no room for, the least important first.
_EXPENDABLE = (
    "experiment",
    "measured",
    "machine",
    "images per second",
    "time per seed",
    "parameters",
    "settings",
    "diverged",
    "seeds",
    "epochs of the best",
    "epochs",
)
_OF_FIG1, _OF_TABLES = ("strict",), ("seeds", "recipe", "epochs", "threads")


@dataclass(frozen=True)
class ReproduceOptions:
    """Train the networks behind a table, the first figure or the text of the paper, continuing from the results so far.

    fig1    100 random settings for each of 8 networks of 10 to 100 layers on MNIST
    table1  convolutional highway networks and their peers on MNIST
    table2  FitNets and highway networks on CIFAR-10
    table3  the 19-layer highway network and its peers on CIFAR-10 and CIFAR-100
    claims  experiments on the statements of the text, from initial weights to 10,000 layers
    all     the tables, then fig1
    """

    what: Annotated[str, positional("WHAT")]
    """What to reproduce: fig1, table1, table2, table3, claims or all."""
    only: Annotated[tuple[str, ...], option("NAME,...")] = ()
    """Train only these networks, such as highway-50,plain-50 of fig1 or highway-a of table2, or these experiments of
    claims, such as init,skips; all results are shown."""
    seeds: Annotated[str | None, option("N|0,1,...")] = None
    """Tables: train N seeds, or those listed; by default, as many as the paper reports."""
    recipe: Literal["fast", "paper", "short"] = "fast"
    """Tables: paper takes the authors' settings where published (300 to 470 epochs), fast our own (a tenth of that),
    short our own for at most two and a half hours per row on one core."""
    epochs: Annotated[int | None, option("N")] = None
    """Tables: train only the first N epochs of the recipe; a later call continues."""
    minutes: Annotated[float | None, option("N")] = None
    """Stop after N minutes; 0 trains nothing and shows the results so far."""
    jobs: Annotated[int, option("N")] = 2
    """The number of workers on this machine; on a GPU, tables use one. With 0, wait for workers elsewhere."""
    threads: Annotated[int, option("N")] = 1
    """Tables: the number of CPU threads per process."""
    strict: bool = False
    """Figure 1: train every setting for all epochs, without successive halving."""
    quick: bool = False
    """Train a tiny version on the digits, to check that everything works."""
    results: Annotated[Path | None, option("FOLDER")] = None
    """The folder for the results; by default, results, or runs/quick with --quick. For fig1 alone, the default is
    results/fig1 or runs/fig1-quick."""
    runs: Annotated[Path | None, option("FOLDER")] = None
    """The folder for unfinished runs; by default, runs."""
    storage: Storage = None
    artifacts: ArtifactFolder = None
    heartbeat: Heartbeat = 15
    root: DataRoot = None


OPTIONS = {"reproduce": ReproduceOptions}


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = read_options(ReproduceOptions, "reproduce", arguments)
    _check(options)
    load_torch()
    from verydeep.training import interruptible

    began = time.monotonic()
    with interruptible() as interrupt:
        if options.what == "claims":
            _reproduce_claims(options, _seconds(options))
        elif options.what != "fig1":
            tables = _TABLES if options.what == "all" else (options.what,)
            _reproduce_tables(options, tables, _seconds(options))
        if options.what in ("fig1", "all") and not interrupt.requested:
            _reproduce_fig1(options, _seconds(options, time.monotonic() - began))
    if interrupt.requested:
        echo("verydeep: interrupted and saved; the same command continues", file=sys.stderr)
        return 130
    return 0


def _seconds(options: ReproduceOptions, spent: float = 0.0) -> float | None:
    return None if options.minutes is None else max(0.0, 60 * options.minutes - spent)


def _check(options: ReproduceOptions) -> None:
    if options.what not in _WHAT:
        raise unknown("table or figure", options.what, _WHAT)
    check_study_options(options.jobs, options.heartbeat)
    for name in ("threads", "epochs"):
        if (value := getattr(options, name)) is not None and value < 1:
            raise UserError(f"--{name} must be at least 1, got {value}")
    if options.minutes is not None and not options.minutes >= 0:
        raise UserError(f"--minutes must be 0 or more, got {options.minutes}")
    if options.what == "all" and options.only:
        raise UserError("--only selects networks of one table or figure; name it instead of all")
    foreign = {"all": (), "fig1": _OF_TABLES, "claims": (*_OF_FIG1, *_OF_TABLES)}.get(options.what, _OF_FIG1)
    defaults = {field.name: field.default for field in fields(options)}
    for name in foreign:
        if getattr(options, name) != defaults[name]:
            raise UserError(f"--{name} does not apply to {options.what}")


def _reproduce_fig1(options: ReproduceOptions, seconds: float | None) -> None:
    """Train for the given time, then write and print all results so far."""
    from verydeep.studies import make_study_progress

    study = _fig1_study(options)
    if seconds == 0:
        study.collect()
    else:
        study.train(options.root, seconds, make_study_progress(quiet=False))
    _write_fig1(study, options.quick)


def _fig1_study(options: ReproduceOptions) -> Fig1:
    from verydeep.paper import HALVING, QUICK, Fig1, selected_networks, without_halving

    protocol = QUICK if options.quick else HALVING
    results = options.results or Path("runs/fig1-quick" if options.quick else "results/fig1")
    if options.what == "all" and options.results:  # the folder of everything
        results = options.results / "fig1"
    runs = options.runs or (results / "runs" if options.quick else Path("runs"))
    folder = runs / ("fig1-quick" if options.quick else "fig1")
    return Fig1(
        without_halving(protocol) if options.strict else protocol,
        selected_networks(_only(options)),
        results,
        folder,
        options.jobs,
        storage_address(options.storage, folder),
        options.artifacts,
        options.heartbeat,
    )


def _write_fig1(study: Fig1, quick: bool) -> None:
    """Write the figure, the table and the pages from all results so far."""
    from verydeep.cli._console import print_markdown
    from verydeep.paper import (
        best_curves,
        claim_lines,
        epochs_left,
        fig1_page,
        fig1_rows,
        fig1_table_lines,
        gate_biases,
        loss_ratio,
        mean_curves,
        write_page,
    )
    from verydeep.report import plot_fig1, plot_gate_bias

    found = list(study.found.values())
    rows = fig1_rows(found, study.protocol)
    for suffix in ("png", "svg"):
        plot_fig1(best_curves(found), mean_curves(found), study.results / f"fig1.{suffix}")
    epochs = study.protocol.stages.epochs[0]
    plot_gate_bias(gate_biases(found, epochs), epochs, study.results / "gate-bias.png")
    left = sum(epochs_left(result.trials, study.protocol) for result in found)
    values = {"ratio_at_100_layers": loss_ratio(rows), "epochs_left": left, "rows": [asdict(row) for row in rows]}
    write_atomic(study.results / "table.json", json.dumps(values, indent=1) + "\n")
    write_atomic(study.results / "fig1.md", fig1_page(found, study.protocol))
    print_markdown(fig1_table_lines(rows), _EXPENDABLE)
    echo()
    print_markdown(claim_lines(rows, left))
    echo()
    echo(f"{study.time_left()}; figure, table and analysis are in {study.results}")
    if study.results.name == "fig1":  # among the other results, not in a folder of its own
        echo(f"everything measured so far: {write_page(study.results.parent, quick)}")


def _reproduce_tables(options: ReproduceOptions, names: tuple[str, ...], seconds: float | None) -> None:
    """Train for the given time, then write and print all results so far."""
    from verydeep.studies import make_study_progress

    results = options.results or Path("runs/quick" if options.quick else "results")
    tables = _tables(options, names, results)
    study = _study_options(options, tables.runs)
    if seconds == 0:
        tables.collect(study)
    else:
        skipped = tables.train(study, options.root, seconds, make_study_progress(quiet=False))
        for name, reason in skipped.items():
            paused = reason.endswith("is paused") and options.epochs is not None
            echo(f"{name} {reason}{'; train it to its end, without --epochs' if paused else ''}")
    _write_tables(tables, names, results, study.jobs)
    for row in tables.refused:
        echo(f"skipped: {tables.found[row].refusal}")


def _reproduce_claims(options: ReproduceOptions, seconds: float | None) -> None:
    """Train for the given time, then write and print all results so far."""
    from verydeep.cli._console import print_markdown
    from verydeep.cli.views._bar import progress_bar
    from verydeep.paper import EXPERIMENTS, Claims, claims_table_lines, selected_experiments, write_claims_page
    from verydeep.studies import make_study_progress

    results = options.results or Path("runs/quick" if options.quick else "results")
    runs = (options.runs or (results / "runs" if options.quick else Path("runs"))) / "claims"
    claims = Claims(selected_experiments(_only(options)), results, runs, quick=options.quick)
    study = _study_options(options, runs)
    if seconds == 0:
        claims.collect(study)
    else:
        began = time.monotonic()
        for name, result in claims.found.items():
            if result.experiment.measure is not None and not result.is_measured:
                with progress_bar(name) as report:
                    result.measure(report or (lambda _: None))
        claims.train(study, options.root, seconds, make_study_progress(quiet=False))
        left = _seconds(options, time.monotonic() - began)
        claims.search(study, options.root, left, make_study_progress(quiet=False), progress_bar)
    everything = Claims(EXPERIMENTS, results, runs, quick=options.quick)
    everything.write()
    print_markdown(claims_table_lines(list(everything.found.values())), _EXPENDABLE)
    echo()
    echo(f"verdicts, numbers and pictures: {write_claims_page(results, options.quick)}")


def _only(options: ReproduceOptions) -> str | None:
    return ",".join(options.only) or None


def _tables(options: ReproduceOptions, names: tuple[str, ...], results: Path) -> Tables:
    from verydeep.paper import Tables, selected_rows

    runs = options.runs or (results / "runs" if options.quick else Path("runs"))
    return Tables(
        selected_rows(names, _only(options)),
        options.recipe,
        results / "tables",
        runs / "tables",
        read_seeds(options.seeds),
        options.epochs,
        options.threads,
        options.quick,
    )


def _study_options(options: ReproduceOptions, folder: Path) -> StudyOptions:
    import torch

    from verydeep.paper import StudyOptions

    jobs = min(options.jobs, 1) if torch.cuda.is_available() else options.jobs
    return StudyOptions(jobs, storage_address(options.storage, folder), options.artifacts, options.heartbeat)


def read_seeds(text: str | None) -> tuple[int, ...] | None:
    """Parse --seeds: `3` means the first three seeds, `0,4` these two, `2,` only this one."""
    if text is None:
        return None
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    if len(numbers) == 1 and "," not in text:
        numbers = list(range(min(numbers[0], _MOST_SEEDS + 1)))
    if not 0 < len(numbers) <= _MOST_SEEDS or min(numbers) < 0:
        raise UserError(
            f"--seeds takes a number of seeds such as 5, at most {_MOST_SEEDS}, or a list such as 0,1,2; got '{text}'"
        )
    return tuple(dict.fromkeys(numbers))


def _write_tables(tables: Tables, names: Sequence[str], results: Path, jobs: int) -> None:
    """Write the curves and the page of all tables, and print the selected tables."""
    from verydeep.cli._console import print_markdown
    from verydeep.paper import TABLES, log_lines, read_results, table_lines, time_left, write_page
    from verydeep.report import plot_tables

    found = read_results(tables.results)
    for suffix in ("png", "svg") if found else ():
        panels = [(title.partition(":")[0], table_panel(table, found)) for table, title in TABLES.items()]
        plot_tables(panels, tables.results / f"curves.{suffix}")
    for table in names:
        echo(TABLES[table])
        print_markdown(table_lines(table, found), _EXPENDABLE)
        if table != "table2":
            echo("The authors' log next to ours")
            print_markdown(log_lines(found, table))
    echo(f"{time_left(tables, jobs)}; everything measured so far: {write_page(results, tables.quick)}")


def table_panel(table: str, found: Sequence[TableResult]) -> list[TableCurves]:
    """The curves of a table's networks, for its panel of the figure."""
    from verydeep.report import TableCurves

    networks = []
    for result in found:
        if result.row.table == table:
            lines = [curve.metrics for curve in result.curves.values()]
            curves = [[line.test_accuracy for line in each if line.test_accuracy] for each in lines]
            published = None if result.is_quick_run else result.row.accuracy
            networks.append(TableCurves(f"{result.row.name}, {result.recipe}", curves, published))
    return networks
