"""The tables in words: every row with what was published beside what was measured, written from the results alone."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import get_args

from verydeep.experiments._recipes import Recipe
from verydeep.experiments._tables import ENTRIES, LOGS, Entry
from verydeep.experiments._tables_results import Curve, TableResult
from verydeep.experiments._tables_run import epoch_seconds
from verydeep.experiments._time import hours

_HEAD = (
    "| network | data | parameters | published % | ours %: best (mean ± std) | recipe | epochs | seeds | time a seed "
    "| machine |",
    "|---|---|---|---|---|---|---|---|---|---|",
)


def read_results(folder: Path, entries: Sequence[Entry] = ENTRIES) -> list[TableResult]:
    """Everything that was measured for some rows."""
    found = [TableResult(folder, entry, recipe) for entry in entries if entry.name for recipe in get_args(Recipe)]
    return [result for result in found if result.curves]


def tables_lines(table: str, found: Sequence[TableResult]) -> list[str]:
    """A table, in Markdown; what has not been trained says so."""
    lines = list(_HEAD)
    for entry in ENTRIES:
        if entry.table != table:
            continue
        untrained = (entry.data, "not yet run" if entry.name else "not trained here", "", "", "", "", "")
        for data, *cells in [_cells(result) for result in found if result.entry == entry] or [untrained]:
            facts = (entry.title, data, entry.parameters, entry.published or "none")
            lines.append(f"| {' | '.join((*facts, *cells))} |")
    return lines


def _cells(result: TableResult) -> tuple[str, ...]:
    assert result.config is not None
    curves, epochs = list(result.curves.values()), result.config.epochs
    trained = [curve for curve in curves if curve.status == "trained"]
    longest = max(len(curve.metrics) for curve in curves)
    return (
        f"{result.config.data.source} (a trial)" if result.trial else result.entry.data,
        _accuracy(result, trained, curves),
        result.recipe,
        f"{epochs}" if trained else f"{longest} of {epochs}",
        f"{len(trained) or len(curves)}",
        hours(mean(curve.seconds for curve in trained or curves)),
        "; ".join(sorted({machine(curve) for curve in curves})),
    )


def _accuracy(result: TableResult, trained: Sequence[Curve], curves: Sequence[Curve]) -> str:
    """Of the runs that have ended, else of those under way, and what became of the others."""
    parts = [best_mean_std([accuracy for curve in trained if (accuracy := curve.accuracy) is not None])]
    under_way = [curve for curve in curves if curve.status == "training"]
    if not trained and under_way:
        parts.append(partly(result, max(under_way, key=lambda curve: len(curve.metrics))))
    elif under_way:
        parts.append(f"{len(under_way)} under way")
    if diverged := sum(curve.status == "diverged" for curve in curves):
        parts.append(f"{diverged} diverged")
    return "; ".join(part for part in parts if part)


def partly(result: TableResult, curve: Curve) -> str:
    """How far a run is, and what all of it would cost."""
    assert result.config is not None
    seconds, epochs = epoch_seconds(result), result.config.epochs
    reached = "" if curve.accuracy is None else f", {100 * curve.accuracy:.1f} %"
    cost = "" if seconds is None else f"; the full recipe would take {hours(seconds * epochs)} on this machine"
    return f"{len(curve.metrics)} of {epochs} epochs{reached}{cost}"


def best_mean_std(values: Sequence[float]) -> str:
    """Accuracies as the paper writes them, in percent; one run has no mean."""
    if len(values) < 2:
        return f"{100 * values[0]:.2f}" if values else ""
    return f"{100 * max(values):.2f} ({100 * mean(values):.2f} ± {100 * stdev(values):.2f})"


def machine(curve: Curve) -> str:
    """What a run was measured on."""
    facts = curve.environment
    threads = facts.get("threads", 1)
    return str(facts.get("gpu") or f"{facts.get('processor')}, {threads} thread{'s' if threads != 1 else ''}")


def log_lines(found: Sequence[TableResult]) -> list[str]:
    """Our runs of the authors' settings beside the logs they published with their code, as far as ours have got."""
    results = {result.entry.name: result for result in found if result.recipe == "paper"}
    ours = {name: _first(results[name]) if name in results else [] for name in LOGS}
    lines = ["| epoch |" + "".join(f" {name}: theirs | ours |" for name in LOGS), "|---|" + "---|---|" * len(LOGS)]
    reached = max(map(len, ours.values()))
    for epoch in sorted({epoch for log in LOGS.values() for epoch in log} | set(range(1, min(reached, 10) + 1))):
        cells = [cell for name, log in LOGS.items() for cell in (log.get(epoch), _at(ours[name], epoch))]
        lines.append(f"| {epoch} |" + "".join(" |" if cell is None else f" {cell:.2f} |" for cell in cells))
    return lines


def _first(result: TableResult) -> list[float | None]:
    """The curve of the first seed."""
    curve = result.curves[min(result.curves)]
    return [line.get("test_accuracy") for line in curve.metrics]


def _at(curve: list[float | None], epoch: int) -> float | None:
    value = curve[epoch - 1] if epoch <= len(curve) else None
    return None if value is None else 100 * value
