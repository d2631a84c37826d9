"""`verydeep train`: train a network on data or from a configuration file, with options; or resume a run."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from verydeep.cli._options import (
    INLINE,
    DataRoot,
    Quiet,
    Setting,
    given_options,
    option,
    positional,
    read_options,
    settings_of,
    value_before,
)
from verydeep.cli._run_options import find_run
from verydeep.cli._status import load_torch, reading
from verydeep.cli._study_options import (
    ArtifactFolder,
    Heartbeat,
    Jobs,
    Storage,
    check_study_options,
    storage_address,
)
from verydeep.config import former_names
from verydeep.errors import UserError
from verydeep.terminal import echo
from verydeep.training import TrainConfig
from verydeep.words import named_score, plural

if TYPE_CHECKING:
    from verydeep.data import Dataset
    from verydeep.training import Position, Run, TrainingProgress


_OF_SEEDS = ("jobs", "storage", "artifacts", "heartbeat")
_LISTS = {"data.target", "data.ignore", "data.categorical", "class_weight"}
_DATA_FILES = (".csv", ".tsv", ".parquet", ".npz")


@dataclass(frozen=True)
class TrainOptions:
    """Train a network on your data, on a known dataset, or as a configuration file says.

    DATA_OR_CONFIG is a .csv, .parquet or .npz file, a folder of images, the name of a known dataset (verydeep data
    list), a .toml file, or the name of a configuration that comes with verydeep, such as highway50-mnist. A run that is
    stopped or killed at any time can be continued with --resume, or by the same command if it has --continue.
    """

    what: Annotated[str | None, positional("DATA_OR_CONFIG")] = None
    """What to train on; by default, mnist."""
    resume: Annotated[Path | None, option("RUN")] = None
    """Continue this run, with the same result as if it had not been stopped; with --epochs N, to N epochs in total."""
    folder: Annotated[Path | None, option("FOLDER")] = None
    """The new run's folder; by default, runs/MODEL-DATA-N."""
    continue_: bool = False
    """Start the run in --folder, or continue it if it is there with the same settings; exit with 0 if it has ended."""
    root: DataRoot = None
    seeds: Annotated[int | None, option("N")] = None
    """Train with N seeds in parallel (--seed, --seed + 1, ...) and report best (mean ± std)."""
    jobs: Jobs = None
    storage: Storage = None
    artifacts: ArtifactFolder = None
    heartbeat: Heartbeat = 15
    tensorboard: bool = False
    """Write TensorBoard events into the run's folder."""
    quiet: Quiet = False
    settings: Annotated[TrainConfig, INLINE] = field(default_factory=TrainConfig)


@dataclass(frozen=True)
class ResumeOptions:
    """Continue a run, with the same result as if it had not been stopped."""

    resume: Annotated[Path, option("RUN")]
    """The run's folder."""
    root: DataRoot = None
    epochs: Annotated[int | None, option("N")] = None
    """Train for N epochs in total; by default, as many as before."""
    threads: Annotated[int | None, option("N")] = None
    """Use N CPU threads; by default, as many as before. With another number, the last digits of the result differ."""
    jobs: Jobs = None
    storage: Storage = None
    artifacts: ArtifactFolder = None
    heartbeat: Heartbeat = 15
    tensorboard: bool = False
    """Write TensorBoard events into the run's folder."""
    quiet: Quiet = False


OPTIONS = {"train": TrainOptions}


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(arguments)
    load_torch(options.quiet)
    from verydeep.studies import SeedsInterrupted
    from verydeep.training import Interrupted, holds_seeds

    several = options.seeds is not None if isinstance(options, TrainOptions) else holds_seeds(options.resume)
    try:
        ending = _several(options) if several else _single(options)
    except (Interrupted, SeedsInterrupted) as stopped:
        if _is_first_process():
            path = stopped.run.path if isinstance(stopped, Interrupted) else stopped.seeds.path
            same = isinstance(options, TrainOptions) and options.continue_
            how = "the same command" if same else f"verydeep train --resume {quote(str(path))}"
            echo(f"verydeep: interrupted and saved; continue with: {how}", file=sys.stderr)
        return 130
    if _is_first_process() and not options.quiet:
        echo(ending)
    return 0


def _is_first_process() -> bool:
    return os.environ.get("RANK", "0") == "0"  # of the processes that torchrun started, one prints


def _single(options: TrainOptions | ResumeOptions) -> str:
    """Train or resume one run and describe how it ended."""
    from verydeep.training import TensorBoard, make_progress

    progress = make_progress(options.quiet)
    if options.tensorboard:
        progress = TensorBoard(progress)
    return _train(options, progress) if isinstance(options, TrainOptions) else _resume(options, progress)


def _train(options: TrainOptions, progress: TrainingProgress) -> str:
    from verydeep.training import train

    exists = options.continue_ and options.folder is not None and (options.folder / "config.json").exists()
    data = None if exists else _read_data(options)  # a run that has ended or has other settings needs no data
    if (
        options.what is None
        and options.settings.data == TrainConfig().data
        and not options.quiet
        and _is_first_process()
    ):
        echo("training on mnist; for other data: verydeep train PATH_OR_NAME", flush=True)
    starts = _announce(options, progress)
    run = train(
        options.settings, options.folder, resume=options.continue_, loaded=data, root=options.root, progress=progress
    )
    return _ending(run) if starts else f"{run.path} has already {_outcome(run)}"


def _resume(options: ResumeOptions, progress: TrainingProgress) -> str:
    from verydeep.training import Run, resume

    run = Run.load(options.resume)
    if options.epochs is not None or run.summary is None:
        return _ending(
            resume(options.resume, epochs=options.epochs, root=options.root, progress=progress, threads=options.threads)
        )
    if run.summary.status not in ("finished", "stopped early"):
        return _ending(run)
    return f"{run.path} has already finished (train it for longer with --epochs N)\n{_ending(run)}"


def _announce(options: TrainOptions, progress: TrainingProgress) -> list[Position]:
    """Say that a run is continued, when that is known.

    Returns:
        An empty list; it will hold the position where training starts.
    """
    start = progress.start
    starts: list[Position] = []

    def announce(run: Run, position: Position, batches: int) -> None:
        if not options.quiet and (position.epoch or position.batch):
            done = f"{position.epoch} of {plural(run.config.epochs, 'epoch')}"
            echo(f"continuing {run.path} after {done}", flush=True)
        starts.append(position)
        start(run, position, batches)

    progress.start = announce  # type: ignore[method-assign]
    return starts


def what_is_trained(options: TrainOptions) -> str:
    """The first line of a training with several seeds."""
    settings = options.settings
    network = f"{settings.model.name} " if settings.model.name else ""
    return f"training {network}on {settings.data.source}"


def _read_data(options: TrainOptions) -> Dataset | None:
    """Read the data, saying so; processes that torchrun started read it together, in `train`."""
    from verydeep.data import load_dataset
    from verydeep.training import ProcessGroup, hold_out_validation, world_size

    if world_size() > 1:
        return None
    settings = options.settings
    ProcessGroup.join(settings.device)  # a device that is missing is noticed before the data is read
    with reading(settings.data.source, options.quiet):
        try:
            return load_dataset(hold_out_validation(settings.data), options.root)
        except UserError as error:
            raise UserError(str(error).replace("Set data.target to", "Add --target with")) from error


def _several(options: TrainOptions | ResumeOptions) -> str:
    """Train or resume a run per seed and describe the results."""
    from verydeep.studies import make_study_progress, resume_seeds, train_seeds
    from verydeep.training import TensorBoard

    if options.tensorboard:
        TensorBoard.check_installed()
    folder = options.folder if isinstance(options, TrainOptions) else options.resume
    shared: dict[str, Any] = {
        "root": options.root,
        "jobs": options.jobs,
        "progress": make_study_progress(options.quiet),
        "tensorboard": options.tensorboard,
        "storage": storage_address(options.storage, folder),
        "artifacts": options.artifacts,
        "heartbeat": options.heartbeat,
    }
    if isinstance(options, ResumeOptions):
        seeds = resume_seeds(options.resume, epochs=options.epochs, **shared)
    elif options.continue_ and options.folder is not None and (options.folder / "seeds.json").exists():
        _require_same_seeds(options)
        seeds = resume_seeds(options.folder, **shared)
    else:
        assert options.seeds is not None
        if options.seeds > 0 and not options.quiet:
            echo(what_is_trained(options), flush=True)
        seeds = train_seeds(options.settings, options.seeds, options.folder, **shared)
    if failed := seeds.problems:
        if not options.quiet:
            echo(seeds.describe())
        first, problem = next(iter(failed.items()))
        raise UserError(
            f"{len(failed)} of {plural(len(seeds.seeds), 'seed')} failed (seed {first}: {problem}); try again with: "
            f"verydeep train --resume {quote(str(seeds.path))}"
        )
    return seeds.describe()


def _require_same_seeds(options: TrainOptions) -> None:
    from verydeep.studies import Seeds
    from verydeep.training import differing_settings

    assert options.folder is not None
    assert options.seeds is not None
    existing = Seeds.load(options.folder)
    different = list(differing_settings(existing.config, options.settings, existing.chosen))
    if existing.seeds != tuple(range(options.settings.seed, options.settings.seed + options.seeds)):
        different.append("seeds")
    if different:
        raise UserError(f"{options.folder} was started with other settings: {', '.join(different)}")


def parse(arguments: list[str]) -> TrainOptions | ResumeOptions:
    """Parse the options; those that are not given take their values from the configuration file, if there is one."""
    reject_former_names(arguments)
    settings = settings_of(TrainOptions)
    given = given_options(settings, "train", arguments)
    if "--help" in arguments or "-h" in arguments:
        return read_options(TrainOptions, "train", arguments)
    if "resume" in given:
        return _resume_options(given, settings)
    if not {"what", "data.source"} & given.keys() and _LISTS & given.keys():
        last = arguments[-1]  # --ignore id date wine.csv: the list has taken the file
        if Path(last).exists():
            return parse([last, *arguments[:-1]])
    options = _train_options(given, settings, arguments)
    if options.continue_ and options.folder is None:
        raise UserError("--continue needs --folder FOLDER, so that the same command finds the run again")
    _check_options_of_seeds(given, options.seeds is not None, "--seeds N")
    if given.get("init") is not None and not Path(given["init"]).is_file():
        options = replace(options, settings=replace(options.settings, init=str(find_run(Path(given["init"])))))
    return options


def _train_options(given: dict[str, Any], settings: list[Setting], arguments: list[str]) -> TrainOptions:
    from verydeep.data import DataConfig

    if "what" not in given:
        return read_options(TrainOptions, "train", arguments)
    try:
        start = find_settings(given["what"])
    except UserError:
        stray = value_before(settings, arguments, given["what"])
        if stray is not None and not Path(given["what"]).exists():
            raise stray from None
        raise
    if "data.source" in given and start == TrainConfig(data=DataConfig(given["what"])):
        raise UserError(f"{given['what']} and --data {given['data.source']} are both data; give one of them")
    return read_options(TrainOptions, "train", arguments, default=TrainOptions(settings=start))


def _resume_options(given: dict[str, Any], settings: list[Setting]) -> ResumeOptions:
    allowed = {f.name for f in fields(ResumeOptions)}
    written = {setting.name: setting.names[0] for setting in settings} | {"what": given.get("what")}
    others = [str(written[name]) for name in given.keys() - allowed]
    if others:
        raise UserError(
            f"--resume continues a run as it was; it does not take {', '.join(sorted(others))} "
            "(--init RUN starts a new run from its weights)"
        )
    run = find_run(given["resume"])
    if (run / "study.json").exists() and not (run / "seeds.json").exists():
        how = f"verydeep worker {quote(str(run))}"
        raise UserError(f"{run} is a study; continue it with the command that started it, or with: {how}")
    several = (run / "seeds.json").exists()
    _check_options_of_seeds(given, several, "a folder made with --seeds")
    if (threads := given.get("threads")) is not None:
        if several:
            raise UserError("several seeds keep the number of threads that they were started with; leave out --threads")
        if not 1 <= threads <= 1024:
            raise UserError(f"--threads must be from 1 to 1024, got {threads}")
    return ResumeOptions(**given | {"resume": run})


def _check_options_of_seeds(given: dict[str, Any], several: bool, needed: str) -> None:
    """Refuse options that only a study understands if a single run is trained."""
    for name in _OF_SEEDS:
        if name in given and not several:
            raise UserError(f"--{name} needs {needed}; a single run trains in one process")
    check_study_options(given.get("jobs"), given.get("heartbeat", 1))


def find_settings(what: str) -> TrainConfig:
    """The settings that a word stands for: those of a configuration, or the default ones on a dataset."""
    from verydeep.data import KNOWN_NAMES, DataConfig
    from verydeep.training import read_config

    path = Path(what)
    if what in KNOWN_NAMES:
        return TrainConfig(data=DataConfig(what))
    if (path / "config.json").exists() or (path / "seeds.json").exists():
        raise UserError(f"{what} is a run; continue it with: verydeep train --resume {quote(what)}")
    near = None if path.exists() else _near_data(path)
    if path.is_dir() or (path.suffix.lower() in _DATA_FILES and not near):
        return TrainConfig(data=DataConfig(what))
    if path.exists() and path.suffix.lower() != ".toml":  # devices and pipes, too
        raise UserError(
            f"{what} is neither data nor a configuration: data is a .csv, .parquet or .npz file or a folder of images, "
            "and the name of a configuration ends in .toml"
        )
    try:
        return read_config(what)
    except UserError:
        if path.exists() or (not near and _is_near_configuration(what)):
            raise
        hint = f"did you mean '{near}'?" if near else "verydeep train --help says what can be given"
        raise UserError(f"{what} is neither a file nor a dataset nor a configuration; {hint}") from None


def _near_data(path: Path) -> str | None:
    """The known dataset, or the data file in the same folder, that a missing path probably means."""
    from verydeep.data import KNOWN_NAMES

    beside = [str(path.with_name(file.name)) for file in path.parent.glob("*") if file.suffix in _DATA_FILES]
    names = {name.lower(): name for name in (*KNOWN_NAMES, *beside)}
    near = get_close_matches(str(path).lower(), names, n=1, cutoff=0.7)
    return names[near[0]] if near else None


def _is_near_configuration(what: str) -> bool:
    """Whether the name is so similar to that of a configuration that this was probably meant."""
    from verydeep.config import list_configs

    return what.endswith(".toml") or bool(get_close_matches(Path(what).stem, list_configs(), n=1, cutoff=0.7))


def reject_former_names(arguments: list[str]) -> None:
    """Refuse options of earlier versions by naming the option that replaced them."""
    renamed = {f"--{old}": f"--{new}".replace("_", "-") for old, new in former_names(TrainConfig).items()}
    for argument in arguments:
        name = argument.partition("=")[0]
        if name in renamed:
            raise UserError(f"{name} is now called {renamed[name]}")


def _ending(run: Run) -> str:
    return f"{_outcome(run)}; everything is in {run.path}"


def _outcome(run: Run) -> str:
    summary = run.summary
    assert summary is not None
    best, line, measure = summary.best, summary.best or summary.last, run.measure
    names = {
        "training": f"train_{measure}" if line is not None and line.get(f"train_{measure}") is not None else measure,
        "validation": f"valid_{measure}",
        "test": f"test_{measure}",
    }
    values = {word: None if line is None else line.get(name) for word, name in names.items()}
    shown = ", ".join(f"{word} {named_score(measure, value)}" for word, value in values.items() if value is not None)
    selected = run.selection.metric
    if selected not in ("loss", measure) and line is not None and (value := line.get(f"valid_{selected}")) is not None:
        shown += f", validation {named_score(selected, value)}"
    kept = f", the best after {best.epoch}" if best and best.epoch != summary.epochs else ""
    epochs = plural(summary.epochs, "epoch")
    return f"{summary.status} after {epochs}{kept}: {shown}"
