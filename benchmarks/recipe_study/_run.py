"""The study of short recipes: training what is missing, and the results on disk."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recipe_study._variations import Study, Variation
from verydeep.config import from_dict, to_dict
from verydeep.data import DataConfig
from verydeep.errors import UserError
from verydeep.files import read_json, write_atomic
from verydeep.lock import exclusive_lock
from verydeep.paper._jobs import Job, train_jobs
from verydeep.training import Interrupt, TrainConfig

_NOTHING = 0.2  # of ten classes, twice what guessing gets


class Scores:
    """Validation accuracies of a study at one length: STUDY-EPOCHS.json."""

    def __init__(self, folder: Path, study: Study, epochs: int) -> None:
        self.study, self.epochs, self.file = study, epochs, folder / f"{study.name}-{epochs}.json"
        self.found: dict[str, dict[str, Any]] = {}
        if self.file.exists():
            self.found = read_json(self.file).get("variations", {})

    def accuracies(self, name: str) -> list[float]:
        """After the last epoch, one a seed that learnt something."""
        return [accuracy for accuracy in self._all(name) if accuracy >= _NOTHING]

    def failed(self, name: str) -> int:
        """How many seeds diverged or learnt nothing."""
        return sum(accuracy < _NOTHING for accuracy in self._all(name))

    def _all(self, name: str) -> list[float]:
        seeds = self.found.get(name, {}).get("seeds", {}).values()
        return [seed["accuracy"] or 0.0 for seed in seeds]

    def has(self, variation: Variation, seed: int) -> bool:
        """Whether a seed was trained."""
        return str(seed) in self.found.get(variation.name, {}).get("seeds", {})

    def start(self, variation: Variation, config: TrainConfig) -> None:
        """Say what is to be trained; results of other settings are refused."""
        line = self.found.setdefault(variation.name, {"config": to_dict(config), "seeds": {}})
        if from_dict(TrainConfig, line["config"], f"{self.file}: {variation.name}") != config:
            words = "was measured with other settings; take it out of there to measure it again"
            raise UserError(f"{self.file}: '{variation.name}' {words}")

    def add(self, variation: Variation, seed: int, metrics: list[dict[str, Any]], environment: dict[str, Any]) -> None:
        """Keep a seed."""
        last = metrics[-1] if metrics else {}
        curve = [line.get("valid_accuracy") for line in metrics]
        result = {"accuracy": last.get("valid_accuracy"), "seconds": last.get("seconds", 0.0), "curve": curve}
        self.found[variation.name]["seeds"][str(seed)] = result | {"environment": environment}
        trained = {name: line for name, line in self.found.items() if line["seeds"]}
        facts = {"study": self.study.name, "epochs": self.epochs}
        values = facts | {"date": datetime.now(UTC).isoformat(timespec="seconds"), "variations": trained}
        write_atomic(self.file, json.dumps(values, indent=1) + "\n")


@dataclass
class VariationStudy:
    """What is to be trained.

    Attributes:
        study: The base and its variations.
        chosen: Which of them.
        epochs: How long.
        seeds: How many.
        results: Where scores are kept.
        runs: Where runs under way are.
        workers: Processes of one thread.
        quick: Train on the digits, to see that everything works.
    """

    study: Study
    chosen: tuple[Variation, ...]
    epochs: int
    seeds: int
    results: Path
    runs: Path
    workers: int = 2
    quick: bool = False

    def config(self, variation: Variation) -> TrainConfig:
        """Of a variation."""
        config = replace(self.study.config(variation, self.epochs), device="cpu", threads=1)
        return replace(config, data=DataConfig("digits", validation=0.2)) if self.quick else config

    def train(
        self, root: Path | None, interrupt: Interrupt, seconds: float | None, tell: Callable[[str], None]
    ) -> None:
        """Train what is missing, a seed of everything before the next seed, and tell of each what it reached."""
        scores = Scores(self.results, self.study, self.epochs)
        folder = self.runs / scores.file.stem
        for variation in self.chosen:
            scores.start(variation, self.config(variation))
        todo = [(v, seed) for seed in range(self.seeds) for v in self.chosen if not scores.has(v, seed)]
        waiting, taken, total = list(todo), dict[Path, tuple[Variation, int]](), len(todo)

        def next_job() -> Job | None:
            if not waiting:
                return None
            variation, seed = waiting.pop(0)
            path = folder / variation.name / f"seed-{seed}"
            taken[path] = (variation, seed)
            return Job(replace(self.config(variation), seed=seed), path, self.epochs)

        with exclusive_lock(
            self.runs / f"{scores.file.stem}.lock", f"{folder} is being trained by another process", wait=False
        ):
            workers = min(self.workers, len(waiting))
            for job, outcome in train_jobs(next_job, workers, root, interrupt, seconds):
                variation, seed = taken.pop(job.path)
                if outcome.status == "killed":
                    waiting.insert(0, (variation, seed))
                    continue
                scores.add(variation, seed, outcome.metrics, read_json(job.path / "environment.json"))
                shutil.rmtree(job.path, ignore_errors=True)
                reached = scores.found[variation.name]["seeds"][str(seed)]["accuracy"]
                said = "diverged" if reached is None else f"{reached:.2%}"
                left = len(waiting) + len(taken)
                tell(f"{self.study.name} {variation.name} seed {seed}: {said}; {left} of {total} runs left")
