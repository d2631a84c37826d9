"""The scores of a study on disk: one JSON file per study and length."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recipe_study._variations import RecipeStudy, Variation
from verydeep.config import from_dict, to_dict
from verydeep.errors import UserError
from verydeep.files import read_json, write_atomic
from verydeep.training import EpochMetrics, TrainConfig

_NOT_LEARNT = 0.2  # below this accuracy a seed has not learnt; guessing among ten classes gives 0.1


class Scores:
    """Validation accuracies of a study at one length, in the file STUDY-EPOCHS.json."""

    def __init__(self, folder: Path, study: RecipeStudy, epochs: int) -> None:
        self.study, self.epochs, self.file = study, epochs, folder / f"{study.name}-{epochs}.json"
        self.variations: dict[str, dict[str, Any]] = {}
        if self.file.exists():
            self.variations = read_json(self.file).get("variations", {})

    def accuracies(self, name: str) -> list[float]:
        """Accuracies after the last epoch of the seeds that learnt."""
        return [accuracy for accuracy in self._all(name) if accuracy >= _NOT_LEARNT]

    def failed(self, name: str) -> int:
        """Number of seeds that diverged or did not learn."""
        return sum(accuracy < _NOT_LEARNT for accuracy in self._all(name))

    def _all(self, name: str) -> list[float]:
        seeds = self.variations.get(name, {}).get("seeds", {}).values()
        return [seed["accuracy"] or 0.0 for seed in seeds]

    def has(self, variation: Variation, seed: int) -> bool:
        """Whether a seed is trained."""
        return str(seed) in self.variations.get(variation.name, {}).get("seeds", {})

    def start(self, variation: Variation, config: TrainConfig) -> None:
        """Set the settings to train; scores of other settings are refused."""
        record = self.variations.setdefault(variation.name, {"config": to_dict(config), "seeds": {}})
        if from_dict(TrainConfig, record["config"], f"{self.file}: {variation.name}") != config:
            problem = "was trained with other settings; remove it from the file to train it again"
            raise UserError(f"{self.file}: '{variation.name}' {problem}")

    def add(self, variation: Variation, seed: int, metrics: list[EpochMetrics], environment: dict[str, Any]) -> None:
        """Record a seed."""
        last = metrics[-1] if metrics else EpochMetrics(0)
        curve = [line.valid_accuracy for line in metrics]
        score = {"accuracy": last.valid_accuracy, "seconds": last.seconds, "curve": curve}
        self.variations[variation.name]["seeds"][str(seed)] = score | {"environment": environment}
        trained = {name: record for name, record in self.variations.items() if record["seeds"]}
        metadata = {"study": self.study.name, "epochs": self.epochs}
        values = metadata | {"date": datetime.now(UTC).isoformat(timespec="seconds"), "variations": trained}
        write_atomic(self.file, json.dumps(values, indent=1) + "\n")
