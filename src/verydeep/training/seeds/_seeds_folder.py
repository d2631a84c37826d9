"""The runs of several seeds on disk, and their summary."""

import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from verydeep.config import from_dict, to_dict
from verydeep.errors import UserError
from verydeep.files import cannot_write, make_folder, read_json, write_atomic
from verydeep.notebook import html_card
from verydeep.training._config import TrainConfig
from verydeep.training._extend import check_new_total
from verydeep.training.run._display import DAMAGE, describe_run, draw
from verydeep.training.run._metrics import EpochMetrics
from verydeep.training.run._run import Run, require_free_folder
from verydeep.words import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILE = "seeds.json"
_FORMAT = 1
_MEASURES = ("test_accuracy", "valid_accuracy", "accuracy")


class Seeds:
    """A folder with one run per seed. `train_seeds` creates it; `Seeds.load` opens it.

    Args:
        path: The folder.
        config: The configuration of all runs.
        seeds: The seeds.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.training import ModelConfig, Seeds, TrainConfig, train_seeds
        >>> config = TrainConfig(DataConfig("digits"), ModelConfig(depth=3, width=8), epochs=1)
        >>> _ = train_seeds(config, 1, "runs/digits-seeds")
        >>> Seeds.load("runs/digits-seeds")
        Seeds('runs/digits-seeds', 1 seed, ...)
    """

    def __init__(self, path: Path, config: TrainConfig, seeds: tuple[int, ...]) -> None:
        self.path, self.config, self.seeds = path, config, seeds

    def __repr__(self) -> str:
        return f"Seeds({str(self.path)!r}, {plural(len(self.seeds), 'seed')}{self._result()})"

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
    ) -> "Figure":
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
                name for name in (*_MEASURES, "loss") if any(getattr(line, name) is not None for line in lines)
            )
        return draw("plot_curves", curves, path, metric=metric, log=log, **options)

    def _curves(self) -> dict[str, list[EpochMetrics]]:
        found = {f"seed {seed}": run.metrics for seed, run in self.runs.items()}
        return {name: lines for name, lines in found.items() if lines}

    def _result(self) -> str:
        """What the seeds reached, after a comma; says what is wrong with a damaged folder."""
        try:
            result = self.summary
            if result is None:
                ended = sum(self.has_ended(seed) for seed in self.seeds)
                return f", {ended} finished"
            what = (result["measure"] or "").replace("valid_", "validation ").replace("_", " ")
            return f", best (mean ± std) {what} {result['text']} %" if result["runs"] else ", none with a result"
        except DAMAGE as error:
            return f", damaged: {error}"

    @classmethod
    def create(cls, path: Path, config: TrainConfig, seeds: tuple[int, ...]) -> "Seeds":
        """Create the folder, which must be new or empty."""
        require_free_folder(path)
        make_folder(path)
        created = cls(path, config, seeds)
        created._write()
        return created

    @classmethod
    def load(cls, path: str | Path) -> "Seeds":
        """Open a folder that `train_seeds` created."""
        file = Path(path) / FILE
        saved = read_json(file, "expected a folder made by train_seeds")
        if saved.get("format") != _FORMAT or not {"training", "seeds"} <= saved.keys():
            raise UserError(f"{file} is not a format-{_FORMAT} list of seeds; was it written by another version?")
        return cls(Path(path), from_dict(TrainConfig, saved["training"], f"{file}: training"), tuple(saved["seeds"]))

    @property
    def runs(self) -> dict[int, Run]:
        """The runs that have been started, by seed."""
        return {seed: Run.load(self.folder(seed)) for seed in self.seeds if self.has_started(seed)}

    @property
    def summary(self) -> dict[str, Any] | None:
        """The result, or None if there is none yet."""
        file = self.path / "summary.json"
        return read_json(file) if file.exists() else None

    def folder(self, seed: int) -> Path:
        """The folder of a seed's run."""
        return self.path / f"seed-{seed}"

    def has_started(self, seed: int) -> bool:
        """Whether this seed has a run."""
        return (self.folder(seed) / "config.json").exists()

    def has_ended(self, seed: int) -> bool:
        """Whether the run of this seed has finished, stopped early or diverged."""
        if not self.has_started(seed):
            return False
        run = Run.load(self.folder(seed))
        summary = run.summary
        return summary is not None and (summary.status == "diverged" or run.config.epochs >= self.config.epochs)

    def with_epochs(self, epochs: int) -> "Seeds":
        """Give the seeds another number of epochs, not less than any of them has completed."""
        for run in self.runs.values():
            if run.summary is None or run.summary.status != "diverged":
                check_new_total(run, epochs)
        changed = Seeds(self.path, replace(self.config, epochs=epochs), self.seeds)
        try:  # first, so that the summary is never one of seeds with other epochs
            (self.path / "summary.json").unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(self.path / "summary.json", error) from error
        changed._write()
        return changed

    def _write(self) -> None:
        saved = {"format": _FORMAT, "seeds": list(self.seeds), "training": to_dict(self.config)}
        write_atomic(self.path / FILE, json.dumps(saved, indent=1) + "\n")

    def finish(self, failed: dict[int, str]) -> None:
        """Write summary.json: the result of each seed, and the best, mean and standard deviation."""
        runs = {seed: run for seed, run in self.runs.items() if run.summary is not None}
        statuses = {seed: run.summary.status for seed, run in runs.items() if run.summary is not None}
        statuses |= dict.fromkeys(failed, "failed")
        measured = {seed: run.measured for seed, run in runs.items() if statuses[seed] != "diverged"}
        measure, values = None, dict[int, float]()
        for name in _MEASURES:
            found = {seed: getattr(line, name, None) for seed, line in measured.items()}
            values = {seed: value for seed, value in found.items() if value is not None}
            if values and len(values) == len(found):
                measure = name
                break
            values = {}
        seeds: list[dict[str, Any]] = [
            {"seed": seed, "status": statuses[seed], "value": values.get(seed)} for seed in sorted(statuses)
        ]
        for line in seeds:
            if line["seed"] in failed:
                line["problem"] = failed[line["seed"]]
        result = {"measure": measure, **statistics(list(values.values())), "seeds": seeds}
        write_atomic(self.path / "summary.json", json.dumps(result, indent=1, ensure_ascii=False) + "\n")

    def describe(self) -> str:
        """The result in a sentence."""
        result = self.summary
        if result is None:
            return f"{self.path} has not finished and can be resumed"
        lost = Counter(line["status"] for line in result["seeds"] if line["value"] is None)
        others = "".join(f"; {count} {status}" for status, count in lost.items())
        if failed := [line for line in result["seeds"] if line["status"] == "failed"]:
            others += f" ({failed[0]['problem']}; resume {self.path} to try again)"
        if not result["runs"]:
            return f"no seed finished{others}; logs and runs are in {self.path}"
        what = f"Best (mean ± std) {result['measure'].replace('_', ' ')}: {result['text']} %"
        over = f"sample standard deviation over {result['runs']} runs" if result["runs"] > 1 else "one run only"
        return f"{what}, {over}{others}; everything is in {self.path}"


def statistics(values: list[float]) -> dict[str, Any]:
    """Best, mean and sample standard deviation of accuracies; the text is in percent, as in the paper."""
    if not values:
        return {"runs": 0, "best": None, "mean": None, "std": None, "text": ""}
    best, middle, std = max(values), mean(values), stdev(values) if len(values) > 1 else None
    spread = "" if std is None else f" ± {100 * std:.2f}"
    text = f"{100 * best:.2f} ({100 * middle:.2f}{spread})"
    return {"runs": len(values), "best": best, "mean": middle, "std": std, "text": text}
