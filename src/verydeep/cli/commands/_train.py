"""`verydeep train`: train a network from a configuration file and options, or resume a run."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from verydeep.cli._options import DataRoot, Quiet, option, read_known_options, read_options
from verydeep.config import former_names
from verydeep.errors import UserError
from verydeep.training import (
    Interrupted,
    Run,
    SeedsInterrupted,
    TensorBoard,
    TrainConfig,
    make_progress,
    make_seeds_progress,
    read_config,
    resume,
    resume_seeds,
    train,
    train_seeds,
)


@dataclass(frozen=True)
class TrainOptions:
    """Train a network. A run that is stopped or killed at any time can be continued with --resume."""

    config: Annotated[Path | None, tyro.conf.Positional, option("CONFIG.toml")] = None
    """A configuration file; options override its values."""
    resume: Annotated[Path | None, option("RUN")] = None
    """Continue this run, with the same result as if it had not been stopped."""
    folder: Annotated[Path | None, option("FOLDER")] = None
    """The new run's folder; by default, runs/MODEL-DATA-N."""
    root: DataRoot = None
    seeds: Annotated[int | None, option("N")] = None
    """Train with N seeds in parallel, counted from --seed, and report Best (mean ± std) over them."""
    tensorboard: bool = False
    """Write TensorBoard events into the run's folder."""
    quiet: Quiet = False
    settings: Annotated[TrainConfig, tyro.conf.arg(name="")] = field(default_factory=TrainConfig)


@dataclass(frozen=True)
class ResumeOptions:
    """Continue a run, with the same result as if it had not been stopped."""

    resume: Annotated[Path, tyro.conf.arg(metavar="RUN")]
    """The run's folder."""
    root: DataRoot = None
    epochs: Annotated[int | None, option("N")] = None
    """Train for N epochs in total; by default, as many as before."""
    tensorboard: bool = False
    """Write TensorBoard events into the run's folder."""
    quiet: Quiet = False


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(arguments)
    several = (
        options.seeds is not None if isinstance(options, TrainOptions) else (options.resume / "seeds.json").exists()
    )
    first = os.environ.get("RANK", "0") == "0"  # of the processes that torchrun started, one prints
    try:
        ending = _several(options) if several else _single(options)
    except (Interrupted, SeedsInterrupted) as stopped:
        if first:
            path = stopped.run.path if isinstance(stopped, Interrupted) else stopped.seeds.path
            print(f"verydeep: interrupted and saved; continue with: verydeep train --resume {path}", file=sys.stderr)
        return 130
    if first and not options.quiet:
        print(ending)
    return 0


def _single(options: TrainOptions | ResumeOptions) -> str:
    """Train or resume one run and describe how it ended."""
    progress = make_progress(options.quiet)
    if options.tensorboard:
        progress = TensorBoard(progress)
    if isinstance(options, TrainOptions):
        run = train(options.settings, options.folder, root=options.root, progress=progress)
    elif options.epochs is not None or Run.load(options.resume).summary is None:
        run = resume(options.resume, epochs=options.epochs, root=options.root, progress=progress)
    else:
        run = Run.load(options.resume)
        return f"{run.path} has already finished (train it for longer with --epochs N)\n{_ending(run)}"
    return _ending(run)


def _several(options: TrainOptions | ResumeOptions) -> str:
    """Train or resume a run per seed and describe the results."""
    if options.tensorboard:
        TensorBoard.check_installed()
    progress = make_seeds_progress(options.quiet)
    if isinstance(options, ResumeOptions):
        seeds = resume_seeds(
            options.resume,
            epochs=options.epochs,
            root=options.root,
            progress=progress,
            tensorboard=options.tensorboard,
        )
    else:
        assert options.seeds is not None
        seeds = train_seeds(
            options.settings,
            options.seeds,
            options.folder,
            root=options.root,
            progress=progress,
            tensorboard=options.tensorboard,
        )
    return seeds.describe()


def parse(arguments: list[str]) -> TrainOptions | ResumeOptions:
    """Parse the options; those that are not given take their values from the configuration file, if there is one."""
    _reject_former_names(arguments)
    if any(argument.partition("=")[0] == "--resume" for argument in arguments):
        resumed, others = read_known_options(ResumeOptions, "train", arguments)
        if others:
            raise UserError(f"--resume continues a run as it was; it does not take {' '.join(others)}")
        return resumed
    settings = TrainConfig()
    if arguments and not arguments[0].startswith("-"):
        settings = read_config(Path(arguments[0]))
    options = read_options(TrainOptions, "train", arguments, default=TrainOptions(settings=settings))
    if options.config is not None and arguments[0].startswith("-"):
        raise UserError(f"the configuration file comes first: verydeep train {options.config} ...")
    return options


def _reject_former_names(arguments: list[str]) -> None:
    """Refuse options of earlier versions by naming the option that replaced them."""
    renamed = {f"--{old}": f"--{new}".replace("_", "-") for old, new in former_names(TrainConfig).items()}
    for argument in arguments:
        name = argument.partition("=")[0]
        if name in renamed:
            raise UserError(f"{name} is now called {renamed[name]}")


def _ending(run: Run) -> str:
    summary = run.summary
    assert summary is not None
    best = summary.best
    measured = {} if (line := best or summary.last) is None else line.to_dict()
    accuracies = {name: value for name, value in measured.items() if name.endswith("accuracy") and value is not None}
    shown = ", ".join(
        f"{name.replace('valid_', 'validation_').replace('_', ' ')} {value:.2%}" for name, value in accuracies.items()
    )
    kept = f", the best after {best.epoch}" if best and best.epoch != summary.epochs else ""
    return f"{summary.status} after {summary.epochs} epochs{kept}: {shown}; everything is in {run.path}"
