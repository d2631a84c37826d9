"""The runs of several seeds on disk, and their summary."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from verydeep.config import to_dict
from verydeep.errors import UserError
from verydeep.files import cannot_write, make_folder, read_json, write_atomic
from verydeep.notebook import html_card
from verydeep.studies._words import metric_label
from verydeep.training import (
    DAMAGE,
    SEEDS_FILE,
    SEEDS_FORMAT,
    EpochMetrics,
    Run,
    Selection,
    TrainConfig,
    best_epoch,
    check_new_total,
    describe_run,
    draw,
    read_seeds_file,
    require_free_folder,
    seed_folder,
    seed_runs,
)
from verydeep.words import higher_is_better, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from verydeep.studies._records import TrainingRecord
    from verydeep.studies._study import Study

_MEASURES = ("test_accuracy", "valid_accuracy", "accuracy", "test_r2", "valid_r2", "r2")
_TRAINED = ("finished", "stopped early")


class Seeds(os.PathLike[str]):
    """A study with one training per seed, in a folder. `train_seeds` creates it; `Seeds.load` opens it.

    Workers on other machines may take part. What they have trained counts in `records` and `summary`; `runs` are those
    on this machine.

    Args:
        path: The folder.
        config: The configuration of all runs.
        seeds: The seeds.
        storage: The address of the PostgreSQL server that records the study, if it needs a password.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.studies import Seeds, train_seeds
        >>> from verydeep.training import ModelConfig, TrainConfig
        >>> config = TrainConfig(DataConfig("digits"), ModelConfig(depth=3, width=8), epochs=1)
        >>> _ = train_seeds(config, 1, "runs/digits-seeds")
        >>> Seeds.load("runs/digits-seeds")
        Seeds('runs/digits-seeds', 1 seed, ...)
    """

    def __init__(self, path: Path, config: TrainConfig, seeds: tuple[int, ...], storage: str | None = None) -> None:
        self.path, self.config, self.seeds, self.storage = path, config, seeds, storage

    def __repr__(self) -> str:
        return f"Seeds({str(self.path)!r}, {plural(len(self.seeds), 'seed')}{self._result()})"

    def __fspath__(self) -> str:
        return str(self.path)

    def _repr_html_(self) -> str:
        try:
            rows = [(f"seed {seed}", describe_run(run)) for seed, run in self.runs.items()]
            pictures = [self.plot()._repr_png_()] if self._curves() else []  # type: ignore[attr-defined]
        except DAMAGE:
            return html_card(repr(self))
        return html_card(repr(self), rows, pictures)

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        metric: str | None = None,
        log: bool = False,
        **options: Any,  # noqa: ANN401
    ) -> Figure:
        """Draw one metric of all seeds over epochs. A notebook shows the figure.

        Args:
            path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
            metric: The metric, such as `valid_loss`; by default, the accuracy that the summary is about.
            log: Whether its axis is logarithmic.
            **options: Options of `verydeep.report.plot_curves`, such as `theme="dark"`.
        """
        curves = self._curves()
        if not curves:
            raise UserError(f"{self.path}: no epoch is complete yet, so there are no curves to draw")
        if metric is None:
            lines = [line for lines in curves.values() for line in lines]
            metric = next(
                name for name in (*_measures(self.config), "loss") if any(line.get(name) is not None for line in lines)
            )
        return draw("plot_curves", curves, path, metric=metric, log=log, **options)

    def _curves(self) -> dict[str, list[EpochMetrics]]:
        """The metrics of every seed that has any: of its run or, if that is on another machine, of the study."""
        found = {seed: run.metrics for seed, run in self.runs.items()}
        if len(found) < len(self.seeds) and (self.path / "study.json").exists():
            found |= {record.number: record.curve for record in self.records if record.number not in found}
        return {f"seed {seed}": found[seed] for seed in self.seeds if found.get(seed)}

    def _result(self) -> str:
        """What the seeds reached, after a comma; says what is wrong with a damaged folder."""
        try:
            result = self.summary
            if result is None:
                return f", {sum(run.summary is not None for run in self.runs.values())} finished"
            unit, what = _unit(result), metric_label(result["measure"] or "")
            return f", best (mean ± std) {what} {result['text']}{unit}" if result["runs"] else ", none with a result"
        except DAMAGE as error:
            return f", damaged: {error}"

    @classmethod
    def create(cls, path: Path, config: TrainConfig, seeds: tuple[int, ...], chosen: Sequence[str] = ()) -> Seeds:
        """Create the folder, which must be new or empty.

        Args:
            path: The folder.
            config: The configuration that the seeds share.
            seeds: The seeds.
            chosen: Which of its settings were not given but chosen for the data.
        """
        require_free_folder(path)
        make_folder(path)
        created = cls(path, config, seeds)
        created._write(chosen)
        return created

    @property
    def chosen(self) -> list[str]:
        """The settings that were not given but chosen for the data."""
        return list(read_json(self.path / SEEDS_FILE).get("chosen") or ())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, storage: str | None = None) -> Seeds:
        """Open a folder that `train_seeds` created.

        Args:
            path: The folder.
            storage: The address of the PostgreSQL server that records the study, if it needs a password.
        """
        return cls(Path(path), *read_seeds_file(Path(path)), storage)

    @cached_property
    def study(self) -> Study:
        """The study; seeds that were trained with version 0.2 or older have one once they are resumed."""
        from verydeep.studies._open import open_study

        return open_study(self.path, storage=self.storage)

    @property
    def records(self) -> list[TrainingRecord]:
        """Every seed with its result so far, wherever it was trained."""
        return self.study.records()

    @property
    def runs(self) -> dict[int, Run]:
        """The runs on this machine that have been started, by seed."""
        return seed_runs(self.path)

    @property
    def summary(self) -> dict[str, Any] | None:
        """The result, or None if there is none yet."""
        file = self.path / "summary.json"
        return read_json(file) if file.exists() else None

    def folder(self, seed: int) -> Path:
        """The folder of a seed's run."""
        return seed_folder(self.path, seed)

    def change_epochs(self, epochs: int) -> None:
        """Give the seeds another number of epochs, not less than any of them has completed."""
        runs = self.runs
        for run in runs.values():
            if run.summary is None or run.summary.status != "diverged":
                check_new_total(run, epochs)
        for record in self.records:
            if record.number not in runs and record.status != "diverged" and record.epochs > epochs:
                done = plural(record.epochs, "epoch")
                raise UserError(f"epochs = {epochs}, but {record.name} of {self.path} has already completed {done}")
        self.config = replace(self.config, epochs=epochs)
        try:  # first, so that the summary is never one of seeds with other epochs
            (self.path / "summary.json").unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(self.path / "summary.json", error) from error
        self._write(self.chosen)

    def _write(self, chosen: Sequence[str]) -> None:
        saved = {
            "format": SEEDS_FORMAT,
            "seeds": list(self.seeds),
            "training": to_dict(self.config),
            "chosen": list(chosen),
        }
        write_atomic(self.path / SEEDS_FILE, json.dumps(saved, indent=1) + "\n")

    def finish(self, records: Sequence[TrainingRecord]) -> None:
        """Write summary.json: the result of each seed, and the best, mean and standard deviation."""
        trained = {record.number: record.curve for record in records if record.status in _TRAINED}
        selection = Selection(self.config.metric or "accuracy", higher_is_better(self.config.metric or "accuracy"))
        measured = {seed: best_epoch(curve, selection) or curve[-1] for seed, curve in trained.items() if curve}
        measure, values = None, dict[int, float]()
        for name in _measures(self.config):
            found = {seed: line.get(name) for seed, line in measured.items()}
            values = {seed: value for seed, value in found.items() if value is not None}
            if values and len(values) == len(found):
                measure = name
                break
            values = {}
        seeds = [_describe_seed(record, values.get(record.number)) for record in records]
        result = {"measure": measure, **statistics(list(values.values()), measure or ""), "seeds": seeds}
        write_atomic(self.path / "summary.json", json.dumps(result, indent=1, ensure_ascii=False) + "\n")

    @property
    def problems(self) -> dict[int, str]:
        """Why seeds have failed, such as a full disk; one that diverged has not failed."""
        lines = [] if self.summary is None else self.summary["seeds"]
        return {line["seed"]: line["problem"] for line in lines if line["status"] == "failed"}

    def describe(self) -> str:
        """The result in a sentence."""
        result = self.summary
        if result is None:
            return f"{self.path} has not finished and can be resumed"
        lost = Counter(line["status"] for line in result["seeds"] if line["value"] is None)
        others = "".join(f"; {count} {status}" for status, count in lost.items())
        if failed := list(self.problems.values()):
            others += f" ({failed[0]}; resume {self.path} to try again)"
        if not result["runs"]:
            return f"no seed finished{others}; logs and runs are in {self.path}"
        what = f"Best (mean ± std) {metric_label(result['measure'])}: {result['text']}{_unit(result)}"
        over = f"sample standard deviation over {result['runs']} runs" if result["runs"] > 1 else "one run only"
        folds = self.config.data.folds
        held_out = "" if folds is None else f", each with one of {folds} folds held out"
        return f"{what}, {over}{held_out}{others}; {self._place(result)}"

    def _place(self, result: dict[str, Any]) -> str:
        """Where the runs that count are."""
        runs = self.runs
        elsewhere = sum(line["value"] is not None and line["seed"] not in runs for line in result["seeds"])
        if not elsewhere:
            return f"everything is in {self.path}"
        if elsewhere == result["runs"]:
            return "the runs are on other machines"
        of = "the run of 1 seed is" if elsewhere == 1 else f"the runs of {elsewhere} seeds are"
        return f"{of} on other machines, everything else is in {self.path}"


def _measures(config: TrainConfig) -> list[str]:
    """What seeds are summarised by, the preferred metric first: in a cross-validation, that of the held-out folds."""
    return sorted(_MEASURES, key=lambda name: config.data.folds is not None and not name.startswith("valid_"))


def _unit(result: dict[str, Any]) -> str:
    return "" if (result["measure"] or "").endswith("r2") else " %"


def _describe_seed(record: TrainingRecord, value: float | None) -> dict[str, Any]:
    """A seed's line of summary.json; one that no worker here could train to the end has failed, until it is resumed."""
    status = record.status if record.has_ended else "failed"
    line = {"seed": record.number, "status": status, "value": value}
    missing = "no worker trained it" if record.status == "waiting" else "its worker ended before the training did"
    return line | ({"problem": record.reason or missing} if status == "failed" else {})


def statistics(values: list[float], measure: str = "accuracy") -> dict[str, Any]:
    """Best, mean and sample standard deviation; the text of accuracies is in percent, as in the paper."""
    if not values:
        return {"runs": 0, "best": None, "mean": None, "std": None, "text": ""}
    best, middle, std = max(values), mean(values), stdev(values) if len(values) > 1 else None
    factor, digits = (1, 4) if measure.endswith("r2") else (100, 2)
    spread = "" if std is None else f" ± {factor * std:.{digits}f}"
    text = f"{factor * best:.{digits}f} ({factor * middle:.{digits}f}{spread})"
    return {"runs": len(values), "best": best, "mean": middle, "std": std, "text": text}
