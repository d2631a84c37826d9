"""The tables in words: every row with what was published beside what was measured, written from the results alone."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import get_args

from verydeep.config import to_dict
from verydeep.paper._duration import hours
from verydeep.paper._recipes import Recipe, read_recipe
from verydeep.paper.tables._results import Curve, TableResult, shared
from verydeep.paper.tables._rows import ENTRIES, LOGS, Entry
from verydeep.paper.tables._study import epoch_seconds
from verydeep.search import dotted

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
    shown = trained or _furthest(curves)
    return (
        f"{result.config.data.source} (a trial)" if result.trial else result.entry.data,
        _accuracy(result, trained, curves),
        result.recipe if result.current else f"{result.recipe}, before it was changed",
        f"{epochs}" if trained else f"{len(shown[0].metrics)} of {epochs}",
        f"{len(shown)}",
        hours(mean(curve.seconds for curve in shown)),
        "; ".join(sorted({machine(curve) for curve in shown})),
    )


def _accuracy(result: TableResult, trained: Sequence[Curve], curves: Sequence[Curve]) -> str:
    """Of the runs that have ended, else of those under way, and what became of the others."""
    parts = [_reached(trained), _short(result, trained)]
    under_way = [curve for curve in curves if curve.status == "training"]
    if not trained and under_way:
        shown = _furthest(under_way)
        parts.append(partly(result, shown))
        under_way = [curve for curve in under_way if curve not in shown]
    if under_way:
        parts.append(f"{len(under_way)} under way")
    if diverged := sum(curve.status == "diverged" for curve in curves):
        parts.append(f"{diverged} diverged")
    return "; ".join(part for part in parts if part)


def _furthest(curves: Sequence[Curve]) -> list[Curve]:
    """Those of most epochs; ones that diverged only if there are no others."""
    going = [curve for curve in curves if curve.status != "diverged"] or list(curves)
    longest = max(len(curve.metrics) for curve in going)
    return [curve for curve in going if len(curve.metrics) == longest]


def _reached(curves: Sequence[Curve]) -> str:
    return best_mean_std([accuracy for curve in curves if (accuracy := curve.accuracy) is not None])


def _short(result: TableResult, curves: Sequence[Curve]) -> str:
    """By how much our mean is below the published one, if it is."""
    ours, published = [accuracy for curve in curves if (accuracy := curve.accuracy) is not None], result.entry.accuracy
    if not ours or published is None or result.trial:
        return ""
    missing = round(100 * published, 2) - round(100 * mean(ours), 2)
    return f"{missing:.2f} short" if missing > 0.001 else ""


def partly(result: TableResult, curves: Sequence[Curve]) -> str:
    """How far runs of equal length are, and what all of one would cost."""
    assert result.config is not None
    done, seconds, epochs = len(curves[0].metrics), epoch_seconds(result), result.config.epochs
    accuracy = "hints, no accuracy yet" if done <= result.config.distill.hint_epochs else _reached(curves)
    cost = "" if seconds is None else f"the full recipe would take {hours(seconds * epochs)} a seed on this machine"
    return "; ".join(part for part in (f"{done} of {epochs} epochs: {accuracy}", cost) if part)


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


def replaced_lines(folder: Path) -> list[str]:
    """What recipes reached that others have taken the place of, and how they differed; empty if there are none."""
    rows = []
    for earlier in sorted(folder.iterdir()) if folder.is_dir() else ():
        for result in read_results(earlier):
            _, ours, _, epochs, *_ = _cells(result)
            cells = (result.entry.title, result.entry.published, ours, epochs, _different(result))
            rows.append(f"| {' | '.join(cells)} |")
    head = ("| network | published % | reached % | epochs | what was different |", "|---|---|---|---|---|")
    return [*head, *rows] if rows else []


def _different(result: TableResult) -> str:
    """The settings that are not those of the present recipe."""
    assert result.config is not None
    now = dotted(to_dict(shared(read_recipe(result.entry.name, result.recipe))))
    then = dotted(to_dict(result.config))
    return ", ".join(f"{name} {then[name]}" for name in then if then[name] != now[name])


def log_lines(found: Sequence[TableResult], table: str) -> list[str]:
    """Our runs of the authors' settings beside the logs they published with their code, as far as ours have got."""
    results = {result.entry.name: result for result in found if result.recipe == "paper" and not result.trial}
    logs = {entry.name: LOGS[entry.name] for entry in ENTRIES if entry.name in LOGS and entry.table == table}
    ours = {name: _first(results[name]) if name in results else [] for name in logs}
    lines = ["| epoch |" + "".join(f" {name}: theirs | ours |" for name in logs), "|---|" + "---|---|" * len(logs)]
    reached = max(map(len, ours.values()))
    for epoch in sorted({epoch for log in logs.values() for epoch in log} | set(range(1, min(reached, 10) + 1))):
        cells = [cell for name, log in logs.items() for cell in (log.get(epoch), _at(ours[name], epoch))]
        lines.append(f"| {epoch} |" + "".join(" |" if cell is None else f" {cell:.2f} |" for cell in cells))
    return lines


def _first(result: TableResult) -> list[float | None]:
    """The curve of the first seed."""
    curve = result.curves[min(result.curves)]
    return [line.get("test_accuracy") for line in curve.metrics]


def _at(curve: list[float | None], epoch: int) -> float | None:
    value = curve[epoch - 1] if epoch <= len(curve) else None
    return None if value is None else 100 * value
