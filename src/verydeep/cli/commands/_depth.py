"""`verydeep depth`: how deep a network must be for some data."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

from verydeep.cli._options import (
    DataRoot,
    Json,
    Quiet,
    option,
    positional,
    read_options,
    settings_of,
    with_option_names,
    without,
)
from verydeep.cli._status import load_torch
from verydeep.cli._study_options import ArtifactFolder, Jobs, Storage, check_study_options, storage_address
from verydeep.cli.commands._train import find_settings
from verydeep.data import DataConfig
from verydeep.errors import UserError
from verydeep.terminal import echo

if TYPE_CHECKING:
    from verydeep.depth import DepthAnswer


@dataclass(frozen=True)
class DepthOptions:
    """Find out how deep a network must be for your data, and get a network of that depth.

    Highway and plain networks of every depth, from a linear model to 50 layers, are trained with settings of their own
    and several seeds. The answer is the smallest depth that is as good as the best, within one standard error, on data
    that was held out; the test data is used once, at the end. If the command is stopped, the same command continues.
    """

    what: Annotated[str, positional("DATA")]
    """A .csv, .parquet or .npz file, a folder of images, or the name of a known dataset (verydeep data list)."""
    minutes: Annotated[float | None, option("N")] = None
    """How long it may take; by default, 10 minutes, or what a slow machine needs."""
    total_epochs: Annotated[int | None, option("N")] = None
    """Train for N epochs in all, instead of --minutes; the result is the same every time on the same kind of
    processor."""
    most: Annotated[int | None, option("N")] = None
    """The depth of the deepest networks; by default, 50 layers, or 6 layers per stage of convolutional networks."""
    network: Annotated[Literal["mlp", "conv"] | None, option("mlp|conv")] = None
    """Fully connected or convolutional networks; by default, conv for your own images and mlp for everything else."""
    width: Annotated[int | None, option("N")] = None
    """Units per hidden layer, or channels of convolutional networks; by default, 24, 48 or 96 units, whichever suits a
    depth best."""
    folder: Annotated[Path | None, option("FOLDER")] = None
    """The folder for all results; by default, runs/depth-DATA."""
    seed: Annotated[int, option("N")] = 0
    """The random seed: which samples are held out, which settings are tried, and the initial weights."""
    loss: Literal["squared", "huber", "absolute"] | None = None
    """The loss of a regression; by default, squared."""
    class_weight: tuple[str, ...] = ()
    """Weights of the classes in the training loss: balanced, or a list such as spam=3,ham=1; by default, all are 1."""
    jobs: Jobs = None
    storage: Storage = None
    artifacts: ArtifactFolder = None
    root: DataRoot = None
    quiet: Quiet = False
    json: Json = False
    data: Annotated[DataConfig, without("source", "folds", "fold")] = field(default_factory=lambda: DataConfig("mnist"))


OPTIONS = {"depth": DepthOptions}


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = read_options(DepthOptions, "depth", arguments)
    check_study_options(options.jobs)
    if options.minutes is not None and options.total_epochs is not None:
        raise UserError("give --minutes or --total-epochs, not both")
    data = _data(options)
    load_torch(options.quiet)
    from verydeep.depth import DepthInterrupted, how_deep, make_depth_progress
    from verydeep.training import TrainConfig

    folder = options.folder or Path("runs") / f"depth-{Path(data.source).resolve().stem}"
    progress = make_depth_progress(options.quiet or options.json)
    try:
        answer = how_deep(
            data,
            folder=folder,
            most=options.most,
            minutes=options.minutes,
            total_epochs=options.total_epochs,
            network=options.network,
            width=options.width,
            seed=options.seed,
            settings=TrainConfig(loss=options.loss, class_weight=options.class_weight),
            storage=storage_address(options.storage, folder),
            artifacts=options.artifacts,
            jobs=options.jobs,
            root=options.root,
            progress=progress,
        )
    except DepthInterrupted:
        echo("verydeep: interrupted and saved; the same command continues", file=sys.stderr)
        return 130
    except UserError as error:
        message = with_option_names(str(error), settings_of(DepthOptions))
        raise UserError(message.replace("total_epochs", "--total-epochs")) from error
    _print(options, answer, folder)
    return 0


def _data(options: DepthOptions) -> DataConfig:
    """The data with its options."""
    settings = find_settings(options.what)
    if Path(options.what).suffix == ".toml" or settings.data.source != options.what:
        raise UserError(f"{options.what} is a configuration; verydeep depth takes data and finds the settings itself")
    return replace(options.data, source=options.what)


def _print(options: DepthOptions, answer: DepthAnswer, folder: Path) -> None:
    if options.json:
        echo((folder / "depth.json").read_text(), end="")
        return
    from verydeep.cli._console import print_line

    print_line(answer.sentence)
    if answer.disagreement:
        print_line(answer.disagreement)
    for note in answer.notes:
        print_line(f"note: {note}")
    if options.quiet:
        return
    print_line(f"the page: {folder / 'depth.html'}")
    if answer.network is not None:
        network = quote(str(folder / answer.network.path))
        print_line(f"the network: {network}; predict with: verydeep predict {network} NEW -o predictions.csv")
