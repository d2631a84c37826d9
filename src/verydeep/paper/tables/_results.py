"""The results of the tables on disk: one JSON file per row and recipe, rewritten after every epoch."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from verydeep.config import from_dict, to_dict
from verydeep.errors import UserError
from verydeep.files import read_json, write_atomic
from verydeep.paper._recipes import Recipe, read_recipe
from verydeep.paper.tables._rows import TableRow
from verydeep.training import EpochMetrics, TrainConfig

_PAPER_DATA = ("mnist", "cifar10", "cifar100")


@dataclass(frozen=True)
class SeedCurve:
    """The training of one seed.

    Attributes:
        status: `training`, `trained` to the end of the recipe, or `diverged`.
        metrics: What was measured in each epoch.
        environment: Versions and machine; those of the last epoch if the run moved.
    """

    status: str
    metrics: tuple[EpochMetrics, ...]
    environment: dict[str, Any]

    @property
    def seconds(self) -> float:
        """Training time so far."""
        return float(self.metrics[-1].seconds) if self.metrics else 0.0

    @property
    def accuracy(self) -> float | None:
        """Test accuracy after the last epoch; the epoch is not selected on it."""
        return self.metrics[-1].test_accuracy if self.metrics else None


class TableResult:
    """The results of one row of a table with one recipe, in the file NAME-RECIPE.json.

    Args:
        folder: The folder of the results, such as `results/tables`.
        row: The row.
        recipe: `paper` for the authors' recipe, `fast` or `short` for ours.

    Attributes:
        row: The row.
        recipe: The recipe.
        file: The file.
        config: The settings of the trainings, or None if there is no file.
        curves: The training of each seed, epoch by epoch.

    Example:
        >>> from verydeep.paper import TABLE_ROWS, TableResult
        >>> result = TableResult("results/tables", TABLE_ROWS[0], "fast")
        >>> result.file.name
        'highway-mnist-16-fast.json'
    """

    def __init__(self, folder: str | Path, row: TableRow, recipe: Recipe) -> None:
        self.row, self.recipe, self.file = row, recipe, Path(folder) / f"{row.name}-{recipe}.json"
        self.config: TrainConfig | None = None
        self.curves: dict[int, SeedCurve] = {}
        if self.file.exists():
            self._read(read_json(self.file))

    @property
    def is_quick_run(self) -> bool:
        """Whether it is a tiny version on other data, which cannot be compared with the published numbers."""
        return self.config is not None and self.config.data.source not in _PAPER_DATA

    @property
    def is_current(self) -> bool:
        """Whether the recipe has not changed since these results."""
        return self.is_quick_run or self.config == shared(read_recipe(self.row.name, self.recipe))

    @property
    def refusal(self) -> str:
        """The message for results of other settings than those to train."""
        return f"{self.file} was measured with other settings; rename or delete it and its runs to start again"

    def fits(self, config: TrainConfig) -> bool:
        """Whether training can continue with these settings."""
        return self.config is None or self.config == shared(config)

    def start(self, config: TrainConfig) -> None:
        """Set the settings to train; results of other settings are refused."""
        if not self.fits(config):
            raise UserError(self.refusal)
        self.config = shared(config)

    def add(self, seed: int, metrics: Sequence[EpochMetrics], environment: dict[str, Any], status: str = "") -> bool:
        """Add the epochs that a seed lacks, and how it ended; return whether anything was new.

        Epochs that are already there stay: a run whose folder was lost trains them again.

        Args:
            seed: The seed.
            metrics: The metrics of all its epochs so far.
            environment: Versions and machine of the last one.
            status: How the training ended in its study, if it did.
        """
        assert self.config is not None
        before = curve = self.curves.get(seed, SeedCurve("training", (), environment))
        if new := tuple(metrics[len(curve.metrics) :]):
            curve = replace(curve, metrics=(*curve.metrics, *new), environment=environment)
        trained = status in ("finished", "stopped early") and len(curve.metrics) >= self.config.epochs
        if curve.status == "training" and (trained or status == "diverged"):
            curve = replace(curve, status="trained" if trained else "diverged")
        if curve is not before:
            self.curves[seed] = curve
        return curve is not before

    def epochs_left(self, seed: int, epochs: int) -> int:
        """Number of epochs that a seed still needs to reach `epochs`."""
        curve = self.curves.get(seed)
        return epochs if curve is None else 0 if curve.status == "diverged" else max(0, epochs - len(curve.metrics))

    def lacks_status(self, seed: int, epochs: int) -> bool:
        """Whether a seed has all its epochs, but was stopped before its run recorded how it ended."""
        curve = self.curves.get(seed)
        return curve is not None and curve.status == "training" and len(curve.metrics) >= epochs

    def write(self) -> None:
        """Write the file."""
        assert self.config is not None
        values = {
            "row": self.row.name,
            "recipe": self.recipe,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "config": to_dict(self.config),
            "seeds": [
                {"seed": seed, **vars(curve), "metrics": [line.to_dict() for line in curve.metrics]}
                for seed, curve in sorted(self.curves.items())
            ],
        }
        write_atomic(self.file, json.dumps(values, indent=1) + "\n")

    def _read(self, values: dict[str, Any]) -> None:
        try:
            self.config = from_dict(TrainConfig, values["config"], f"{self.file}: config")
            for line in values["seeds"]:
                metrics = tuple(map(EpochMetrics.from_dict, line["metrics"]))
                self.curves[line["seed"]] = SeedCurve(line["status"], metrics, line["environment"])
                if not all(0 <= (each.test_accuracy or 0) <= 1 for each in metrics):
                    raise ValueError("accuracy outside 0 to 1")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"{self.file} is damaged ({error!r}); rename or delete it to start again") from error


def shared(config: TrainConfig) -> TrainConfig:
    """The part of a configuration that all seeds and machines share."""
    return replace(config, seed=0, device="auto", threads=None, distill=replace(config.distill, teacher=None))
