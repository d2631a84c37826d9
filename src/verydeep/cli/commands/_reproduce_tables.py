"""`verydeep reproduce table1`, `table2`, `table3`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from verydeep.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verydeep.cli.commands._reproduce import ReproduceOptions
    from verydeep.paper import TableResult, Tables
    from verydeep.report import TableCurves
    from verydeep.training import Interrupt

_MOST_SEEDS = 1000


def reproduce_tables(
    options: ReproduceOptions, tables: tuple[str, ...], interrupt: Interrupt, seconds: float | None
) -> None:
    """Train for the given time, then write and print all results so far."""
    from verydeep.cli.views._reproduce import make_tables_view
    from verydeep.paper import TEACHER

    results = options.results or Path("runs/quick" if options.quick else "results")
    study = _study(options, tables, results)
    if seconds != 0:
        view = make_tables_view(study)
        try:
            study.train(options.root, interrupt, seconds, view.epoch)
        finally:
            view.close()
        teaching = set(map(study.schedule.teacher_status, study.waiting))
        if "diverged" in teaching:
            print(f"rows with hints wait for {TEACHER.name}, which diverged; move its run away to train it again")
        elif "training" in teaching and options.epochs is not None:
            print(f"rows with hints wait for {TEACHER.name}; train it to its end, without --epochs")
    _write(study, tables, results)
    for row in study.schedule.refused:
        print(f"left alone: {study.schedule.results[row].refusal}")


def _study(options: ReproduceOptions, tables: tuple[str, ...], results: Path) -> Tables:
    from verydeep.paper import Tables, selected_rows

    runs = options.runs or (results / "runs" if options.quick else Path("runs"))
    return Tables(
        selected_rows(tables, options.only),
        options.recipe,
        results / "tables",
        runs / "tables",
        read_seeds(options.seeds),
        options.epochs,
        options.jobs,
        options.threads,
        options.quick,
    )


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


def _write(study: Tables, tables: Sequence[str], results: Path) -> None:
    """Write the curves and the page of all tables, and print the selected tables."""
    from verydeep.paper import TABLES, log_lines, read_results, table_lines, write_page
    from verydeep.report import plot_tables

    found = read_results(study.results)
    for suffix in ("png", "svg") if found else ():
        panels = [(title.partition(":")[0], panel(table, found)) for table, title in TABLES.items()]
        plot_tables(panels, study.results / f"curves.{suffix}")
    for table in tables:
        print(TABLES[table], *table_lines(table, found), sep="\n")
        if table != "table2":
            print("The authors' log beside ours", *log_lines(found, table), sep="\n")
    print(f"{study.time_left()}; everything measured so far: {write_page(results, study.quick)}")


def panel(table: str, found: Sequence[TableResult]) -> list[TableCurves]:
    """The curves of a table's networks, for its panel of the figure."""
    from verydeep.report import TableCurves

    networks = []
    for result in found:
        if result.row.table == table:
            lines = [curve.metrics for curve in result.curves.values()]
            curves = [[line["test_accuracy"] for line in each if line.get("test_accuracy")] for each in lines]
            published = None if result.is_quick_run else result.row.accuracy
            networks.append(TableCurves(f"{result.row.name}, {result.recipe}", curves, published))
    return networks
