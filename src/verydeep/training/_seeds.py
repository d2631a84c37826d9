"""One configuration under several seeds, side by side: a folder of runs and `Best (mean ± std)` over them.

seeds.json     the configuration and the seeds
seed-N/        the run of each seed, a run like any other
seed-N.log     what its process printed
summary.json   the result
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from verydeep.config import from_dict, to_dict
from verydeep.data import load_dataset
from verydeep.errors import UserError
from verydeep.files import make_folder, write_whole
from verydeep.lock import alone
from verydeep.training._config import TrainConfig
from verydeep.training._interrupt import interruptible
from verydeep.training._run import Run
from verydeep.training._seed_process import SeedProcess
from verydeep.training._seeds_report import SeedsReport
from verydeep.training._seeds_summary import summarise
from verydeep.training._train import free_path, make_model

FILE = "seeds.json"
_FORMAT = 1


class Seeds:
    """The runs of several seeds on disk."""

    def __init__(self, path: Path, config: TrainConfig, seeds: tuple[int, ...]) -> None:
        self.path, self.config, self.seeds = path, config, seeds

    @classmethod
    def create(cls, path: Path, config: TrainConfig, seeds: tuple[int, ...]) -> "Seeds":
        """Make the folder; one that has anything in it is refused."""
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise UserError(f"{path} is there already; choose another with --run, or continue it with --resume {path}")
        make_folder(path)
        saved = {"format": _FORMAT, "seeds": list(seeds), "training": to_dict(config)}
        write_whole(path / FILE, json.dumps(saved, indent=1) + "\n")
        return cls(path, config, seeds)

    @classmethod
    def load(cls, path: str | Path) -> "Seeds":
        """Open a folder that `train_seeds` made."""
        file = Path(path) / FILE
        try:
            saved = json.loads(file.read_text())
            if saved["format"] != _FORMAT:
                raise UserError(f"{file} was written by another version (format {saved['format']}, not {_FORMAT})")
            return cls(Path(path), from_dict(TrainConfig, saved["training"], f"{file}: training"), tuple(saved["seeds"]))
        except OSError as error:
            raise UserError(f"cannot read {file}: {error.strerror}; expected a folder made with --seeds") from error
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise UserError(f"{file} cannot be used: {error}") from error

    @property
    def runs(self) -> dict[int, Run]:
        """The runs that have been started, by seed."""
        paths = {seed: self.path / f"seed-{seed}" for seed in self.seeds}
        return {seed: Run.load(path) for seed, path in paths.items() if (path / "config.json").exists()}

    @property
    def summary(self) -> dict[str, Any] | None:
        """The result, or None while there is none."""
        file = self.path / "summary.json"
        return dict(json.loads(file.read_text())) if file.exists() else None
