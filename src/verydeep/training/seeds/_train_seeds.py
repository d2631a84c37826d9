"""One configuration with several seeds, in parallel.

seeds.json     the configuration and the seeds
seed-N/        the run of each seed, a run like any other
seed-N.log     what its process printed
summary.json   the result: `Best (mean ± std)`
"""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from verydeep.data import load_dataset
from verydeep.errors import UserError
from verydeep.lock import exclusive_lock
from verydeep.processes import python_command
from verydeep.training._config import TrainConfig
from verydeep.training._initial_weights import load_initial_weights
from verydeep.training._interrupt import interruptible
from verydeep.training._train import make_model
from verydeep.training.run._environment import child_environment
from verydeep.training.run._run import numbered_folder, reserve_number
from verydeep.training.seeds._seeds_folder import Seeds
from verydeep.training.seeds._seeds_progress import SeedsProgress, choose_seeds_progress

_UPDATE_EVERY = 0.2  # seconds
_MOST_SEEDS = 10_000


class SeedsInterrupted(Exception):  # noqa: N818 - not an error
    """Someone asked to stop, with Ctrl-C or SIGTERM. Every seed is saved, and `resume_seeds` continues them.

    Attributes:
        seeds: The seeds.

    Example:
        >>> from verydeep.training import SeedsInterrupted, TrainConfig, train_seeds
        >>> def train_or_save(config: TrainConfig) -> None:
        ...     try:
        ...         train_seeds(config, 5)
        ...     except SeedsInterrupted as stopped:
        ...         print(f"saved; resume_seeds({str(stopped.seeds.path)!r}) continues")
    """

    def __init__(self, seeds: Seeds) -> None:
        super().__init__(f"training was interrupted; {seeds.path} is saved and can be resumed")
        self.seeds = seeds


def train_seeds(
    config: TrainConfig,
    count: int,
    path: str | Path | None = None,
    *,
    root: str | Path | None = None,
    jobs: int | None = None,
    progress: SeedsProgress | bool | None = True,
    tensorboard: bool = False,
) -> Seeds:
    """Train with the seeds `config.seed` to `config.seed + count - 1`, each in its own process.

    A seed that diverges or fails does not stop the others. By default each process uses one thread, so the run of a
    seed has the same bits however many seeds there are.

    Args:
        config: The network, the data and the training settings.
        count: The number of seeds.
        path: The folder for their runs, which must be new or empty; by default `runs/MODEL-DATA-N`.
        root: Folder of the known datasets.
        jobs: How many train at the same time; by default as many as the cores allow, or one on a GPU.
        progress: True shows a table that updates itself in a terminal or a notebook, and nothing elsewhere; False and
            None show nothing.
        tensorboard: Write TensorBoard events for every run.

    Returns:
        The runs and their summary.

    Raises:
        UserError: Settings, data or files do not fit together, or every seed failed.
        SeedsInterrupted: Someone pressed Ctrl-C; every seed is saved.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.training import ModelConfig, TrainConfig, train_seeds
        >>> config = TrainConfig(DataConfig("digits"), ModelConfig(depth=3, width=8), epochs=1)
        >>> seeds = train_seeds(config, 2, "runs/digits-seeds")
        >>> print(seeds.describe())
        Best (mean ± std) test accuracy: ... %, sample standard deviation over 2 runs; ...
    """
    if not 1 <= count <= _MOST_SEEDS:
        raise UserError(f"the number of seeds must be from 1 to {_MOST_SEEDS:,}, got {count:,}")
    if "WORLD_SIZE" in os.environ:
        raise UserError("every seed already has its own process; train several seeds without torchrun")
    config = replace(config, threads=config.threads or 1)
    # Report what is missing or does not fit together once, before any process starts.
    dataset = load_dataset(config.data, root)
    model = make_model(config, dataset)
    if config.init is not None:
        load_initial_weights(model, config.init, dataset.classes)
    folder = numbered_folder(config, dataset, reserve_number(config, dataset)) if path is None else Path(path)
    del dataset
    seeds = Seeds.create(folder, config, tuple(range(config.seed, config.seed + count)))
    return _fit(seeds, root, jobs, choose_seeds_progress(progress), tensorboard)


def resume_seeds(
    path: str | Path | Seeds,
    *,
    epochs: int | None = None,
    root: str | Path | None = None,
    jobs: int | None = None,
    progress: SeedsProgress | bool | None = True,
    tensorboard: bool = False,
) -> Seeds:
    """Resume the seeds that have not finished, or train all seeds for more epochs.

    Args:
        path: The seeds, or their folder.
        epochs: The new total number of epochs, as in `resume`; diverged seeds are unchanged.
        root: Folder of the known datasets.
        jobs: As in `train_seeds`.
        progress: As in `train_seeds`.
        tensorboard: Write TensorBoard events for every run.

    Returns:
        The runs and their summary.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.training import ModelConfig, TrainConfig, resume_seeds, train_seeds
        >>> config = TrainConfig(DataConfig("digits"), ModelConfig(depth=3, width=8), epochs=1)
        >>> seeds = train_seeds(config, 1, "runs/digits-seeds")
        >>> seeds = resume_seeds("runs/digits-seeds", epochs=2)
        >>> [run.summary.epochs for run in seeds.runs.values()]
        [2]
    """
    seeds = Seeds.load(path.path if isinstance(path, Seeds) else path)
    if epochs is not None and epochs != seeds.config.epochs:
        seeds = seeds.with_epochs(epochs)
    return _fit(seeds, root, jobs, choose_seeds_progress(progress), tensorboard)


def _fit(seeds: Seeds, root: str | Path | None, jobs: int | None, progress: SeedsProgress, tensorboard: bool) -> Seeds:
    with exclusive_lock(seeds.path / "lock", f"{seeds.path} is being trained by another process", wait=False):
        progress.start(seeds)
        try:
            failed, interrupted = _run_until_done(
                seeds, root, jobs or _default_jobs(seeds.config), progress, tensorboard
            )
        finally:
            progress.close()
        if interrupted:
            raise SeedsInterrupted(seeds)
        if len(failed) == len(seeds.seeds):
            raise UserError(f"every seed failed: {failed[seeds.seeds[0]]} (logs are in {seeds.path})")
        seeds.finish(failed)
    return seeds


def _run_until_done(
    seeds: Seeds, root: str | Path | None, jobs: int, progress: SeedsProgress, tensorboard: bool
) -> tuple[dict[int, str], bool]:
    """Start processes until all seeds are finished; return problems by seed, and whether someone interrupted."""
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
                progress.update(running.keys(), failed)
                time.sleep(_UPDATE_EVERY)
        finally:  # does nothing unless someone interrupts a second time
            for process in running.values():
                process.kill()
    return failed, interrupt.requested


def _default_jobs(config: TrainConfig) -> int:
    if config.device != "cpu":
        import torch

        if config.device != "auto" or torch.cuda.is_available():
            return 1
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, cores // (config.threads or 1))


class SeedProcess:
    """A process that trains one seed.

    It is a fresh interpreter, because a fork of a process with threads may hang. It saves and ends when its input is
    closed, so also when the process that started it is gone.
    """

    def __init__(self, folder: Path, seed: int, root: str | Path | None, tensorboard: bool) -> None:
        self.log = folder / f"seed-{seed}.log"
        command = python_command("-m", "verydeep.training.seeds._seed_worker", str(folder), str(seed))
        command += [str(root) if root else "", "tensorboard" if tensorboard else ""]
        with self.log.open("wb") as log:
            # In a separate session, so that Ctrl-C reaches only this process, which passes it on once.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=child_environment(),
                start_new_session=True,
            )

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    @property
    def problem(self) -> str:
        """Why it ended before its run did; empty if all went well or someone stopped it."""
        code = self._process.wait()
        self.stop()
        if code in (0, 130):
            return ""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"its process ended with {code}; out of memory?"

    def stop(self) -> None:
        """Ask it to save and end."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        """End it now; its run continues from the last checkpoint."""
        self._process.kill()
        self._process.wait()
        self.stop()
