"""One configuration under several seeds, side by side.

seeds.json     the configuration and the seeds
seed-N/        the run of each seed, a run like any other
seed-N.log     what its process said
summary.json   the result: `Best (mean ± std)`
"""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from verydeep.data import load_dataset
from verydeep.errors import UserError
from verydeep.lock import exclusive_lock
from verydeep.training._config import TrainConfig
from verydeep.training._folders import free_number, numbered_folder
from verydeep.training._interrupt import interruptible
from verydeep.training._seed_process import SeedProcess
from verydeep.training._seeds_folder import Seeds
from verydeep.training._seeds_report import SeedsReport
from verydeep.training._train import make_model

_LOOK_EVERY = 0.2  # seconds


class SeedsInterrupted(Exception):  # noqa: N818 - not an error
    """Someone asked to stop; every seed is saved and can be continued."""

    def __init__(self, seeds: Seeds) -> None:
        super().__init__(f"interrupted and saved; continue with: verydeep train --resume {seeds.path}")
        self.seeds = seeds


def train_seeds(
    config: TrainConfig,
    count: int,
    path: str | Path | None = None,
    *,
    root: str | Path | None = None,
    jobs: int | None = None,
    report: SeedsReport | None = None,
    tensorboard: bool = False,
) -> Seeds:
    """Train with the seeds `config.seed` to `config.seed + count - 1`, each in a process of its own.

    A seed that diverges or fails does not stop the others. Each process computes with one thread unless
    `config.threads` says otherwise, so that a seed's run is the same to the bit however many there are.

    Args:
        config: What to train on what, and how.
        count: How many seeds.
        path: The folder of their runs, which must not exist or be empty; `runs/MODEL-DATA-N` unless given.
        root: Where known datasets are kept.
        jobs: How many at once; as many as there are cores for their threads unless given, on a GPU one.
        report: What people see; nothing unless given.
        tensorboard: Whether every run writes TensorBoard events.
    """
    if count < 1:
        raise UserError(f"seeds must be at least 1, got {count}")
    if "WORLD_SIZE" in os.environ:
        raise UserError("seeds are spread over processes already: use --seeds without torchrun")
    config = replace(config, threads=config.threads or 1)
    dataset = load_dataset(config.data, root)  # what does not exist or fit together is said once, before any process
    make_model(config, dataset)
    folder = numbered_folder(config, dataset, free_number(config, dataset)) if path is None else Path(path)
    del dataset
    seeds = Seeds.create(folder, config, tuple(range(config.seed, config.seed + count)))
    return _fit(seeds, root, jobs, report or SeedsReport(), tensorboard)


def resume_seeds(
    path: str | Path,
    *,
    root: str | Path | None = None,
    jobs: int | None = None,
    report: SeedsReport | None = None,
    tensorboard: bool = False,
) -> Seeds:
    """Continue the seeds that have not ended; the arguments are those of `train_seeds`."""
    return _fit(Seeds.load(path), root, jobs, report or SeedsReport(), tensorboard)


def _fit(seeds: Seeds, root: str | Path | None, jobs: int | None, report: SeedsReport, tensorboard: bool) -> Seeds:
    with exclusive_lock(seeds.path / "lock", f"{seeds.path} is being trained by another process", wait=False):
        report.start(seeds)
        try:
            failed, interrupted = _work_off(seeds, root, jobs or _jobs(seeds.config), report, tensorboard)
        finally:
            report.close()
        if interrupted:
            raise SeedsInterrupted(seeds)
        if len(failed) == len(seeds.seeds):
            raise UserError(f"every seed failed: {failed[seeds.seeds[0]]} (logs are in {seeds.path})")
        seeds.finish(failed)
    return seeds


def _work_off(
    seeds: Seeds, root: str | Path | None, jobs: int, report: SeedsReport, tensorboard: bool
) -> tuple[dict[int, str], bool]:
    """Start processes until all seeds have ended; return what went wrong by seed, and whether someone interrupted."""
    waiting = [seed for seed in seeds.seeds if not seeds.has_ended(seed)]
    running: dict[int, SeedProcess] = {}
    failed: dict[int, str] = {}
    with interruptible() as interrupt:
        try:
            while (waiting and not interrupt.requested) or running:
                while waiting and not interrupt.requested and len(running) < jobs:
                    seed = waiting.pop(0)
                    running[seed] = SeedProcess(seeds.path, seed, root, tensorboard)
                for seed in [seed for seed, process in running.items() if process.has_ended]:
                    problem = running.pop(seed).problem
                    if not seeds.has_ended(seed) and (problem or not interrupt.requested):
                        failed[seed] = problem or "its process was asked to stop"
                if interrupt.requested:
                    for process in running.values():
                        process.stop()
                report.look(running.keys(), failed)
                time.sleep(_LOOK_EVERY)
        finally:  # nothing to do, unless someone interrupts a second time
            for process in running.values():
                process.kill()
    return failed, interrupt.requested


def _jobs(config: TrainConfig) -> int:
    if config.device != "cpu":
        import torch

        if config.device != "auto" or torch.cuda.is_available():
            return 1
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, cores // (config.threads or 1))
