"""Runs side by side: the settings in which they differ, and what they reached."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from verydeep.config import dotted, to_dict
from verydeep.errors import UserError
from verydeep.notebook import html_card
from verydeep.training.run._listing import run_status
from verydeep.training.run._metrics import EpochMetrics
from verydeep.training.run._run import Run
from verydeep.training.run._seed_runs import holds_seeds, seed_runs
from verydeep.words import named_score

_ALWAYS_APART = ("checkpoint_every",)  # has no influence on the result


@dataclass(frozen=True)
class ComparedRun:
    """One run, or all seeds of one configuration, in a comparison. Numbers of several seeds are means.

    Attributes:
        name: The folder, as it was given.
        status: As in `RunInfo`; for several seeds, the statuses of all runs.
        model: The network's name.
        data: The data's name or path.
        depth: Number of hidden layers.
        parameters: Number of trainable parameters.
        epochs_done: Epochs completed; for several seeds, the fewest.
        epochs: Epochs in total.
        loss: Training loss of the last epoch.
        valid_accuracy: Validation accuracy of the saved weights; of a regression, R2.
        test_accuracy: Test accuracy of the saved weights; of a regression, R2.
        test_accuracy_std: Sample standard deviation over seeds; None for a single run.
        seconds: Training time per run.
        seeds: The seeds.
        metrics: What was measured in each epoch; for several seeds, in those that all have completed.
        measure: What the accuracies are: `accuracy`, or `r2` of a regression.

    Examples:
        >>> from verydeep.training import ComparedRun
        >>> ComparedRun("runs/a", "finished", test_accuracy=0.97).test_accuracy
        0.97
    """

    name: str
    status: str
    model: str = ""
    data: str = ""
    depth: int | None = None
    parameters: int | None = None
    epochs_done: int = 0
    epochs: int = 0
    loss: float | None = None
    valid_accuracy: float | None = None
    test_accuracy: float | None = None
    test_accuracy_std: float | None = None
    seconds: float = 0.0
    seeds: tuple[int, ...] = ()
    metrics: tuple[EpochMetrics, ...] = field(default=(), repr=False)
    measure: str = "accuracy"


@dataclass(frozen=True, repr=False)
class RunComparison:
    """The result of `compare_runs`.

    Attributes:
        runs: The runs, in the order in which they were given.
        settings: The settings in which they differ, such as `optim.lr`, with the value of each run.

    Examples:
        >>> from verydeep.training import ComparedRun, RunComparison
        >>> runs = ComparedRun("a", "finished", loss=0.1), ComparedRun("b", "finished", loss=0.2)
        >>> comparison = RunComparison(runs, {"optim.lr": (0.1, 0.2)})
        >>> comparison
        <RunComparison: a and b, which differ in optim.lr>
        >>> min(comparison.runs, key=lambda run: run.loss).name
        'a'
    """

    runs: tuple[ComparedRun, ...]
    settings: Mapping[str, tuple[Any, ...]]

    def __repr__(self) -> str:
        *others, last = (run.name for run in self.runs)
        return f"<RunComparison: {', '.join(others)} and {last}, which differ in {self._differences()}>"

    def _repr_html_(self) -> str:
        rows = [(run.name, _describe(run)) for run in self.runs]
        settings = [(name, " / ".join(map(str, values))) for name, values in self.settings.items()]
        return html_card(f"Comparison of {len(self.runs)} runs", [*rows, *settings])

    def _differences(self) -> str:
        names = list(self.settings)
        more = f" and {len(names) - 3} more settings" if len(names) > 3 else ""
        return ", ".join(names[:3]) + more or "no setting"


def _describe(run: ComparedRun) -> str:
    """How far a run is and what it reached, in a few words."""
    parts = [run.status, f"{run.epochs_done} of {run.epochs} epochs"]
    if run.valid_accuracy is not None:
        parts.append(f"validation {named_score(run.measure, run.valid_accuracy)}")
    if run.test_accuracy is not None:
        parts.append(f"test {named_score(run.measure, run.test_accuracy)}")
    return ", ".join(parts)


def compare_runs(*runs: Run | str | os.PathLike[str]) -> RunComparison:
    """Compare runs that may differ in anything: settings, network, data, how far they are.

    Args:
        *runs: Two or more runs, their folders, or folders with one run per seed (`verydeep.studies.Seeds`).

    Returns:
        The settings in which they differ, and what each reached.

    Raises:
        UserError: A folder holds no run, or there are fewer than two.

    Examples:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.training import ModelConfig, TrainConfig, compare_runs, train
        >>> runs = [
        ...     train(TrainConfig(DataConfig("digits"), ModelConfig(depth=depth), epochs=1), f"depth-{depth}")
        ...     for depth in (2, 4)
        ... ]
        >>> compare_runs(*runs).settings
        {'model.depth': (2, 4)}
    """
    if len(runs) < 2:
        raise UserError(f"a comparison needs two runs or more, got {len(runs)}")
    groups = [_open(run) for run in runs]
    values = [_settings(members) for _, members in groups]
    names = dict.fromkeys(name for each in values for name in each)
    table = {name: tuple(each.get(name) for each in values) for name in names if name not in _ALWAYS_APART}
    differing = {name: row for name, row in table.items() if any(value != row[0] for value in row[1:])}
    return RunComparison(tuple(_compared(name, members) for name, members in groups), differing)


def _open(run: Run | str | os.PathLike[str]) -> tuple[str, list[Run]]:
    """The name of a run or of a folder of seeds, and its runs."""
    if isinstance(run, Run):
        return str(run.path), [run]
    path = Path(run)
    members = list(seed_runs(path).values()) if holds_seeds(path) else [Run.load(path)]
    if not members:
        raise UserError(f"{path}: no seed has been started yet")
    return str(path), members


def _settings(runs: Sequence[Run]) -> dict[str, Any]:
    """All settings by their dotted names; what the network chose for itself is filled in."""
    values = dotted(to_dict(runs[0].config))
    built = runs[0].metadata.get("config") or {}
    for name, value in values.items():
        table, _, last = name.rpartition(".")
        if table == "model" and value is None and last in built:
            values[name] = built[last]
    if len(runs) > 1:
        values["seed"] = [run.config.seed for run in runs]
    return values


def _compared(name: str, runs: Sequence[Run]) -> ComparedRun:
    metrics = [run.metrics for run in runs]
    last = [lines[-1] for lines in metrics if lines]
    measured = [line for run in runs if (line := run.measured) is not None]
    measure = runs[0].measure
    accuracies = [value for line in measured if (value := line.get(f"test_{measure}")) is not None]
    first, size = runs[0], runs[0].metadata.get("size") or {}
    return ComparedRun(
        name=name,
        status=", ".join(dict.fromkeys(map(run_status, runs))),
        model=first.config.model.name if first.is_network else "(your own)",
        data=first.config.data.source if "dataset" not in first.user_supplied else "(your own)",
        depth=size.get("depth"),
        parameters=size.get("parameters"),
        epochs_done=min((lines[-1].epoch if lines else 0) for lines in metrics),
        epochs=first.config.epochs,
        loss=_mean([line.loss for line in last]),
        valid_accuracy=_mean([line.get(f"valid_{measure}") for line in measured]),
        test_accuracy=_mean(accuracies),
        test_accuracy_std=stdev(accuracies) if len(accuracies) > 1 else None,
        seconds=_mean([line.seconds for line in last]) or 0.0,
        seeds=tuple(run.config.seed for run in runs),
        metrics=tuple(_mean_lines(metrics)),
        measure=measure,
    )


def _mean_lines(metrics: Sequence[Sequence[EpochMetrics]]) -> list[EpochMetrics]:
    """The mean of every metric over the runs, for the epochs that all of them have completed."""
    if len(metrics) == 1:
        return list(metrics[0])
    names = [f.name for f in fields(EpochMetrics) if f.name not in ("epoch", "extra")]
    lines = []
    for epoch in zip(*metrics, strict=False):
        means = {name: _mean([getattr(line, name) for line in epoch]) for name in names}
        extra = {
            name: mean for name in epoch[0].extra if (mean := _mean([line.get(name) for line in epoch])) is not None
        }
        lines.append(replace(epoch[0], **means, extra=extra))
    return lines


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean(known) if known else None
