"""Training the variations of a study that have no score yet."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from recipe_study._scores import Scores
from recipe_study._variations import RecipeStudy, Variation
from verydeep.data import DataConfig
from verydeep.lock import exclusive_lock
from verydeep.studies import Budget, Group, TrainingRecord, run_study, start_study
from verydeep.training import TrainConfig


@dataclass
class StudyRunner:
    """Trains variations of a study at one length.

    Attributes:
        study: The base and its variations.
        variations: The variations to train.
        epochs: Number of epochs.
        seeds: Number of seeds.
        results: Folder of the scores.
        runs: Folder of the runs under way.
        jobs: Number of workers on this machine, each with one thread.
        quick: Train on the digits, to check that everything works.
    """

    study: RecipeStudy
    variations: tuple[Variation, ...]
    epochs: int
    seeds: int
    results: Path
    runs: Path
    jobs: int = 2
    quick: bool = False

    def config(self, variation: Variation) -> TrainConfig:
        """The configuration of a variation."""
        config = replace(self.study.config(variation, self.epochs), device="cpu", threads=1)
        return replace(config, data=DataConfig("digits", validation=0.2)) if self.quick else config

    def train(self, root: Path | None, seconds: float | None, show: Callable[[str], None]) -> None:
        """Train what is missing, one seed of every variation before the next seed; `show` gets a line per result."""
        scores, groups, missing = self._scores(), list[Group](), dict[str, Variation]()
        for variation in self.variations:
            if seeds := tuple(seed for seed in range(self.seeds) if not scores.has(variation, seed)):
                groups.append(Group(variation.name, self.config(variation), seeds=seeds))
                missing |= dict.fromkeys(groups[-1].training_names, variation)
        if not missing:
            return
        folder = self.runs / scores.file.stem
        study = start_study(folder, groups, breadth_first=True, restart_changed=True, add_seeds=True)
        done = set[str]()

        def record(training: TrainingRecord) -> None:
            if training.status == "failed":
                show(f"{self.study.name} {training.name} failed: {training.reason}")
                return
            variation, seed = missing[training.name], training.number
            with exclusive_lock(folder.with_suffix(".lock"), ""):  # another process may add scores, too
                scores = self._scores()
                if not scores.has(variation, seed):
                    scores.add(variation, seed, training.curve, training.environment)
            shutil.rmtree(study.run_path(training.name), ignore_errors=True)
            done.add(training.name)
            accuracy = scores.variations[variation.name]["seeds"][str(seed)]["accuracy"]
            result = "diverged" if accuracy is None else f"{accuracy:.2%}"
            left = f"{len(missing) - len(done)} of {len(missing)} runs left"
            show(f"{self.study.name} {variation.name} seed {seed}: {result}; {left}")

        study.retry_failed(missing)
        budget = Budget(seconds)
        run_study(study, jobs=self.jobs, budget=budget, only=missing, root=root, progress=False, on_end=record)

    def _scores(self) -> Scores:
        """The scores so far; those of other settings are refused."""
        scores = Scores(self.results, self.study, self.epochs)
        for variation in self.variations:
            scores.start(variation, self.config(variation))
        return scores
