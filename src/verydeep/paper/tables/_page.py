"""The lines of the tables, with the published numbers next to ours, from the results alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import get_args

from verydeep.config import dotted, to_dict
from verydeep.paper._duration import format_duration
from verydeep.paper._recipes import Recipe, read_recipe
from verydeep.paper._templates import TEMPLATES
from verydeep.paper.tables._results import SeedCurve, TableResult, shared
from verydeep.paper.tables._rows import AUTHOR_LOGS, TABLE_ROWS, TableRow
from verydeep.paper.tables._time_left import epoch_seconds
from verydeep.report import render_markdown

_IMAGES = {"mnist": 60_000, "cifar10": 50_000, "cifar100": 50_000}  # that a network is trained with in an epoch


@dataclass(frozen=True)
class TableLine:
    """A line of a table, as text: the published row, then our results of one recipe."""

    network: str
    data: str
    parameters: str
    published: str
    ours: str
    recipe: str = ""
    epochs: str = ""
    seeds: str = ""
    time: str = ""
    speed: str = ""
    machine: str = ""


@dataclass(frozen=True)
class ReplacedLine:
    """What a recipe reached that has since been replaced, and how it differed."""

    network: str
    published: str
    ours: str
    epochs: str
    different: str


@dataclass(frozen=True)
class LogLine:
    """Test accuracies in percent after an epoch: theirs and ours, network by network."""

    epoch: int
    accuracies: tuple[float | None, ...]

    @property
    def cells(self) -> list[str]:
        """The line as text; accuracies that are not known are empty."""
        return [str(self.epoch), *("" if value is None else f"{value:.2f}" for value in self.accuracies)]


@dataclass(frozen=True)
class AuthorsLog:
    """The logs that the authors published with their code, by network, next to our runs of their recipes."""

    networks: tuple[str, ...]
    lines: tuple[LogLine, ...]

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return ["epoch", *(column for name in self.networks for column in (f"{name}: theirs", "ours"))]


def read_results(folder: str | Path, rows: Sequence[TableRow] = TABLE_ROWS) -> list[TableResult]:
    """Read what was measured for Tables 1 to 3.

    Args:
        folder: The folder of the results, such as `results/tables`.
        rows: The rows to read; by default, all.

    Returns:
        The results of every row and recipe that has any.

    Example:
        >>> from verydeep.paper import read_results
        >>> for result in read_results("results/tables"):
        ...     print(result.row.title, result.recipe, [curve.accuracy for curve in result.curves.values()])
    """
    results = [TableResult(folder, row, recipe) for row in rows if row.name for recipe in get_args(Recipe)]
    return [result for result in results if result.curves]


def table_lines(table: str, results: Sequence[TableResult]) -> list[str]:
    """A table, in Markdown; rows without results say so."""
    return render_markdown("table.md", TEMPLATES, lines=table_rows(table, results)).splitlines()


def log_lines(results: Sequence[TableResult], table: str) -> list[str]:
    """The authors' logs of a table's networks next to ours, in Markdown."""
    return render_markdown("table-log.md", TEMPLATES, log=authors_log(results, table)).splitlines()


def table_rows(table: str, results: Sequence[TableResult]) -> list[TableLine]:
    """The lines of a table: one per row and recipe with results, one per row without."""
    lines = []
    for row in TABLE_ROWS:
        if row.table == table:
            lines += [_line(result) for result in results if result.row == row] or [_untrained(row)]
    return lines


def _untrained(row: TableRow) -> TableLine:
    reason = "not yet run" if row.name else "not trained here"
    return TableLine(row.title, row.data, row.parameters, row.published or "none", reason)


def _line(result: TableResult) -> TableLine:
    assert result.config is not None
    row, curves, epochs = result.row, list(result.curves.values()), result.config.epochs
    trained = [curve for curve in curves if curve.status == "trained"]
    shown = trained or _furthest(curves)
    return TableLine(
        network=row.title,
        data=f"{result.config.data.source} (quick run)" if result.is_quick_run else row.data,
        parameters=row.parameters,
        published=row.published or "none",
        ours=_ours(result, trained, curves),
        recipe=result.recipe if result.is_current else f"{result.recipe}, since changed",
        epochs=f"{epochs}" if trained else f"{len(shown[0].metrics)} of {epochs}",
        seeds=f"{len(shown)}",
        time=format_duration(mean(curve.seconds for curve in shown)),
        speed=_speed(result, shown),
        machine="; ".join(sorted({_machine(curve) for curve in shown})),
    )


def _speed(result: TableResult, curves: Sequence[SeedCurve]) -> str:
    """Training images per second, evaluation included; only for the paper's datasets, whose sizes are known."""
    assert result.config is not None
    images, seconds = _IMAGES.get(result.config.data.source, 0), sum(curve.seconds for curve in curves)
    epochs = sum(len(curve.metrics) for curve in curves)
    return f"{images * epochs / seconds:,.0f}" if images and seconds else ""


def core_hours(results: Sequence[TableResult]) -> float:
    """The time of all trainings, those that are not finished too, times their threads."""
    curves = [curve for result in results for curve in result.curves.values()]
    return sum(curve.seconds * int(curve.environment.get("threads", 1)) for curve in curves) / 3600


def _ours(result: TableResult, trained: Sequence[SeedCurve], curves: Sequence[SeedCurve]) -> str:
    """Accuracy of the finished seeds, or else of the furthest ones, and the number of other seeds."""
    parts = [_accuracy(trained), _shortfall(result, trained)]
    training = [curve for curve in curves if curve.status == "training"]
    if not trained and training:
        shown = _furthest(training)
        parts.append(_partial(result, shown))
        training = [curve for curve in training if curve not in shown]
    if training:
        parts.append(f"{len(training)} still training")
    if diverged := sum(curve.status == "diverged" for curve in curves):
        parts.append(f"{diverged} diverged")
    return "; ".join(part for part in parts if part)


def _furthest(curves: Sequence[SeedCurve]) -> list[SeedCurve]:
    """The curves with the most epochs; diverged ones only if there are no others."""
    candidates = [curve for curve in curves if curve.status != "diverged"] or list(curves)
    longest = max(len(curve.metrics) for curve in candidates)
    return [curve for curve in candidates if len(curve.metrics) == longest]


def _accuracy(curves: Sequence[SeedCurve]) -> str:
    """Accuracies as the paper writes them, in percent: best (mean ± std), or a single value."""
    values = [accuracy for curve in curves if (accuracy := curve.accuracy) is not None]
    if len(values) < 2:
        return f"{100 * values[0]:.2f}" if values else ""
    return f"{100 * max(values):.2f} ({100 * mean(values):.2f} ± {100 * stdev(values):.2f})"


def _shortfall(result: TableResult, curves: Sequence[SeedCurve]) -> str:
    """How far our mean is below the published one, if it is."""
    ours, published = [accuracy for curve in curves if (accuracy := curve.accuracy) is not None], result.row.accuracy
    if not ours or published is None or result.is_quick_run:
        return ""
    missing = round(100 * published, 2) - round(100 * mean(ours), 2)
    return f"{missing:.2f} below" if missing > 0.001 else ""


def _partial(result: TableResult, curves: Sequence[SeedCurve]) -> str:
    """The accuracy of unfinished curves of equal length, and how long the full recipe would take."""
    assert result.config is not None
    done, seconds, epochs = len(curves[0].metrics), epoch_seconds(result), result.config.epochs
    accuracy = "hints, no accuracy yet" if done <= result.config.distill.hint_epochs else _accuracy(curves)
    whole = "" if seconds is None else format_duration(seconds * epochs)
    cost = whole and f"the full recipe would take {whole} per seed on this machine"
    return "; ".join(part for part in (f"{done} of {epochs} epochs: {accuracy}", cost) if part)


def _machine(curve: SeedCurve) -> str:
    """The GPU or the processor of a run."""
    environment = curve.environment
    threads = environment.get("threads", 1)
    processor = f"{environment.get('processor')}, {threads} thread{'s' if threads != 1 else ''}"
    return str(environment.get("gpu") or processor)


def replaced_recipes(folder: Path) -> list[ReplacedLine]:
    """What the recipes in the sub-folders of a folder reached before they were replaced."""
    lines = []
    for earlier in sorted(folder.iterdir()) if folder.is_dir() else ():
        for result in read_results(earlier):
            line = _line(result)
            lines.append(ReplacedLine(line.network, line.published, line.ours, line.epochs, _differences(result)))
    return lines


def _differences(result: TableResult) -> str:
    """The settings that differ from those of the present recipe."""
    assert result.config is not None
    now = dotted(to_dict(shared(read_recipe(result.row.name, result.recipe))))
    then = dotted(to_dict(result.config))
    return ", ".join(f"{name} {then[name]}" for name in then if then[name] != now[name])


def authors_log(results: Sequence[TableResult], table: str) -> AuthorsLog:
    """The authors' logs of a table's networks next to our runs of their recipes, as far as those are trained."""
    by_name = {result.row.name: result for result in results if result.recipe == "paper" and not result.is_quick_run}
    logs = {row.name: AUTHOR_LOGS[row.name] for row in TABLE_ROWS if row.name in AUTHOR_LOGS and row.table == table}
    ours = {name: _first_curve(by_name[name]) if name in by_name else [] for name in logs}
    reached = max(map(len, ours.values()))
    epochs = sorted({epoch for log in logs.values() for epoch in log} | set(range(1, min(reached, 10) + 1)))
    lines = [
        LogLine(epoch, tuple(cell for name, log in logs.items() for cell in (log.get(epoch), _at(ours[name], epoch))))
        for epoch in epochs
    ]
    return AuthorsLog(tuple(logs), tuple(lines))


def _first_curve(result: TableResult) -> list[float | None]:
    """Test accuracy by epoch of the first seed."""
    curve = result.curves[min(result.curves)]
    return [metrics.test_accuracy for metrics in curve.metrics]


def _at(curve: list[float | None], epoch: int) -> float | None:
    value = curve[epoch - 1] if epoch <= len(curve) else None
    return None if value is None else 100 * value
