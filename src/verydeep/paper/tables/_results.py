"""What was measured for the tables: a JSON file for every row and recipe, written again after every epoch."""

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from verydeep.config import from_dict, to_dict
from verydeep.errors import UserError
from verydeep.files import read_json, write_atomic
from verydeep.paper._recipes import Recipe, read_recipe
from verydeep.paper.tables._rows import KNOWN, Entry
from verydeep.training import TrainConfig


@dataclass(frozen=True)
class Curve:
    """One seed.

    Attributes:
        status: `training`, `trained` to the end of the recipe, or `diverged`.
        metrics: One dictionary for every epoch.
        environment: Versions and machine, of the last epoch if it went on elsewhere.
    """

    status: str
    metrics: tuple[dict[str, Any], ...]
    environment: dict[str, Any]

    @property
    def seconds(self) -> float:
        """Time trained."""
        return float(self.metrics[-1]["seconds"]) if self.metrics else 0.0

    @property
    def accuracy(self) -> float | None:
        """On the test set, after the last epoch; no epoch is chosen."""
        return self.metrics[-1].get("test_accuracy") if self.metrics else None


class TableResult:
    """The file of one row and recipe, NAME-RECIPE.json."""

    def __init__(self, folder: Path, entry: Entry, recipe: Recipe) -> None:
        self.entry, self.recipe, self.file = entry, recipe, folder / f"{entry.name}-{recipe}.json"
        self.config: TrainConfig | None = None
        self.curves: dict[int, Curve] = {}
        if self.file.exists():
            self._read(read_json(self.file))

    @property
    def trial(self) -> bool:
        """Whether it is a tiny version on other data, which says nothing about the published numbers."""
        return self.config is not None and self.config.data.source not in KNOWN

    @property
    def current(self) -> bool:
        """Whether the recipe is still the one that was measured."""
        return self.trial or self.config == shared(read_recipe(self.entry.name, self.recipe))

    @property
    def refusal(self) -> str:
        """What to say when it is of other settings than those to be trained."""
        return f"{self.file} was measured with other settings; move it and its runs away to start again"

    def fits(self, config: TrainConfig) -> bool:
        """Whether it can be continued with these settings."""
        return self.config is None or self.config == shared(config)

    def start(self, config: TrainConfig) -> None:
        """Say what is to be trained; results of other settings are refused."""
        if not self.fits(config):
            raise UserError(self.refusal)
        self.config = shared(config)

    def epoch(self, seed: int, metrics: dict[str, Any], environment: dict[str, Any]) -> None:
        """Keep an epoch; one trained again because a run's folder was lost is there already."""
        curve = self.curves.get(seed, Curve("training", (), environment))
        if metrics["epoch"] == len(curve.metrics) + 1:
            self.curves[seed] = replace(curve, metrics=(*curve.metrics, metrics), environment=environment)
            self.write()

    def end(self, seed: int, diverged: bool) -> None:
        """Note that a seed has nothing left to train."""
        assert self.config is not None
        curve = self.curves[seed]
        if diverged or len(curve.metrics) >= self.config.epochs:
            self.curves[seed] = replace(curve, status="diverged" if diverged else "trained")
            self.write()

    def left(self, seed: int, epochs: int) -> int:
        """Epochs that a seed still needs to have so many."""
        curve = self.curves.get(seed)
        return epochs if curve is None else 0 if curve.status == "diverged" else max(0, epochs - len(curve.metrics))

    def unsettled(self, seed: int, epochs: int) -> bool:
        """Whether a seed has all epochs, but was stopped before its run said how it ended."""
        curve = self.curves.get(seed)
        return curve is not None and curve.status == "training" and len(curve.metrics) >= epochs

    def write(self) -> None:
        """The file."""
        assert self.config is not None
        values = {
            "row": self.entry.name,
            "recipe": self.recipe,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "config": to_dict(self.config),
            "seeds": [{"seed": seed, **vars(curve)} for seed, curve in sorted(self.curves.items())],
        }
        write_atomic(self.file, json.dumps(values, indent=1) + "\n")

    def _read(self, values: dict[str, Any]) -> None:
        try:
            self.config = from_dict(TrainConfig, values["config"], f"{self.file}: config")
            for line in values["seeds"]:
                self.curves[line["seed"]] = Curve(line["status"], tuple(line["metrics"]), line["environment"])
                if not all(0 <= metrics.get("test_accuracy", 0) <= 1 for metrics in line["metrics"]):
                    raise ValueError("an accuracy that is none")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"{self.file} is damaged ({error!r}); move it away to start again") from error


def shared(config: TrainConfig) -> TrainConfig:
    """What all seeds and machines have in common."""
    return replace(config, seed=0, device="auto", threads=None, distill=replace(config.distill, teacher=None))
