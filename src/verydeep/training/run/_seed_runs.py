"""A folder with one run per seed, as `verydeep.studies.train_seeds` creates it: which runs are inside."""

from pathlib import Path

from verydeep.config import from_dict
from verydeep.errors import UserError
from verydeep.files import read_json
from verydeep.training._config import TrainConfig
from verydeep.training.run._run import Run

SEEDS_FILE = "seeds.json"  # the configuration and the seeds
SEEDS_FORMAT = 1


def holds_seeds(folder: Path) -> bool:
    """Whether a folder holds one run per seed."""
    return (folder / SEEDS_FILE).exists()


def read_seeds_file(folder: Path) -> tuple[TrainConfig, tuple[int, ...]]:
    """The configuration and the seeds of such a folder."""
    file = folder / SEEDS_FILE
    saved = read_json(file, "expected a folder made by train_seeds")
    if saved.get("format") != SEEDS_FORMAT or not {"training", "seeds"} <= saved.keys():
        raise UserError(f"{file} is not a format-{SEEDS_FORMAT} list of seeds; was it written by another version?")
    return from_dict(TrainConfig, saved["training"], f"{file}: training"), tuple(saved["seeds"])


def seed_folder(folder: Path, seed: int) -> Path:
    """The folder of a seed's run."""
    return folder / f"seed-{seed}"


def seed_runs(folder: Path) -> dict[int, Run]:
    """The runs of such a folder that have been started, by seed."""
    _, seeds = read_seeds_file(folder)
    paths = {seed: seed_folder(folder, seed) for seed in seeds}
    return {seed: Run.load(path) for seed, path in paths.items() if (path / "config.json").exists()}
