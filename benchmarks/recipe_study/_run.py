"""Training the variations of a study that have no score yet."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from recipe_study._scores import Scores
from recipe_study._variations import RecipeStudy, Variation
from verydeep.data import DataConfig
from verydeep.files import read_json
from verydeep.lock import exclusive_lock
from verydeep.paper import Job, train_jobs
from verydeep.training import Interrupt, TrainConfig


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
        workers: Number of processes, each with one thread.
        quick: Train on the digits, to check that everything works.
    """

    study: RecipeStudy
    variations: tuple[Variation, ...]
    epochs: int
    seeds: int
    results: Path
    runs: Path
    workers: int = 2
    quick: bool = False

    def config(self, variation: Variation) -> TrainConfig:
        """The configuration of a variation."""
        config = replace(self.study.config(variation, self.epochs), device="cpu", threads=1)
        return replace(config, data=DataConfig("digits", validation=0.2)) if self.quick else config

    def train(
        self, root: Path | None, interrupt: Interrupt, seconds: float | None, show: Callable[[str], None]
    ) -> None:
        """Train what is missing, one seed of every variation before the next seed; `show` gets a line per result."""
        scores = Scores(self.results, self.study, self.epochs)
        folder = self.runs / scores.file.stem
        for variation in self.variations:
            scores.start(variation, self.config(variation))
        waiting = [(v, seed) for seed in range(self.seeds) for v in self.variations if not scores.has(v, seed)]
        taken, total = dict[Path, tuple[Variation, int]](), len(waiting)

        def next_job() -> Job | None:
            if not waiting:
                return None
            variation, seed = waiting.pop(0)
            path = folder / variation.name / f"seed-{seed}"
            taken[path] = (variation, seed)
            return Job(replace(self.config(variation), seed=seed), path, self.epochs)

        busy = f"{folder} is being trained by another process"
        with exclusive_lock(self.runs / f"{scores.file.stem}.lock", busy, wait=False):
            workers = min(self.workers, len(waiting))
            for job, outcome in train_jobs(next_job, workers, root, interrupt, seconds):
                variation, seed = taken.pop(job.path)
                if outcome.status == "killed":
                    waiting.insert(0, (variation, seed))
                    continue
                scores.add(variation, seed, outcome.metrics, read_json(job.path / "environment.json"))
                shutil.rmtree(job.path, ignore_errors=True)
                accuracy = scores.variations[variation.name]["seeds"][str(seed)]["accuracy"]
                result = "diverged" if accuracy is None else f"{accuracy:.2%}"
                left = len(waiting) + len(taken)
                show(f"{self.study.name} {variation.name} seed {seed}: {result}; {left} of {total} runs left")
