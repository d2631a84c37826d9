"""`verydeep search`: train with many settings drawn from a space, and show the results."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

from verydeep.cli._options import DataRoot, Quiet, option, positional, read_options
from verydeep.cli._status import status
from verydeep.cli._study_options import (
    ArtifactFolder,
    BudgetText,
    Heartbeat,
    Jobs,
    Storage,
    check_study_options,
    storage_address,
)
from verydeep.cli.commands._train import reject_former_names
from verydeep.errors import UserError, unknown
from verydeep.files import write_atomic
from verydeep.terminal import echo
from verydeep.words import plural

if TYPE_CHECKING:
    from verydeep.search import SearchStudy
    from verydeep.studies import TrainingRecord

_Study = Annotated[Path, positional("STUDY")]
_Url = Annotated[str | None, option("postgresql://...")]
_COMMANDS = ("show", "best")
_ENOUGH = 10  # trials per field, below which shares of importance are still uncertain


@dataclass(frozen=True)
class SearchOptions:
    """Train with many settings in parallel; if it is stopped, the same command continues the search.

    search show STUDY  Show the best trials and the importance of each setting, with figures.
    search best STUDY  Write the best trial's configuration, ready for verydeep train.
    """

    config: Annotated[Path, positional("CONFIG")]
    """A training configuration with a [search.space] table: a .toml file, or the name of one that comes with verydeep,
    such as search-digits."""
    study: Annotated[Path | None, option("FOLDER")] = None
    """The folder for the trials; by default, runs/search-CONFIG. Its name is the name of the study on a server."""
    trials: Annotated[int | None, option("N")] = None
    """Try N settings; by default, as many as the configuration says, or 100."""
    jobs: Jobs = None
    budget: BudgetText = None
    sampler: Annotated[Literal["random", "tpe"] | None, option("random|tpe")] = None
    """Draw settings at random, as in the paper, or with TPE, which learns from earlier trials."""
    seed: Annotated[int | None, option("N")] = None
    """The random seed for drawing settings."""
    storage: Storage = None
    artifacts: ArtifactFolder = None
    heartbeat: Heartbeat = 15
    root: DataRoot = None
    quiet: Quiet = False


@dataclass(frozen=True)
class SearchShowOptions:
    """Show the best trials and the importance of each setting; write figures, CSV and JSON to STUDY/show."""

    study: _Study
    """The study's folder."""
    top: Annotated[int, option("N")] = 10
    """List the N best trials."""
    out: Annotated[Path | None, option("FOLDER")] = None
    """The folder for figures and files; by default, STUDY/show."""
    storage: _Url = None
    """The PostgreSQL server that stores the study, if its address needs a password."""
    json: Annotated[bool, option("")] = False
    """Print everything as JSON and write no files."""


@dataclass(frozen=True)
class SearchBestOptions:
    """Write the configuration of the best trial, ready for verydeep train, and fetch its run if it is elsewhere."""

    study: _Study
    """The study's folder."""
    out: Annotated[Path | None, option("FILE.toml", aliases=("-o",))] = None
    """The file to write; by default, STUDY/best.toml."""
    storage: _Url = None
    """The PostgreSQL server that stores the study, if its address needs a password."""


OPTIONS = {
    "search": SearchOptions,
    "search show": SearchShowOptions,
    "search best": SearchBestOptions,
}


def main(arguments: list[str]) -> int:
    """Run the command."""
    reject_former_names(arguments)
    if arguments[:1] == ["worker"]:
        raise UserError("search worker is now called verydeep worker STUDY")
    if arguments[:1] == ["show"]:
        return _show(read_options(SearchShowOptions, "search show", arguments[1:]))
    if arguments[:1] == ["best"]:
        return _best(read_options(SearchBestOptions, "search best", arguments[1:]))
    if len(arguments) > 1 and re.fullmatch("[a-z]+", arguments[0]) and not arguments[1].startswith("-"):
        raise unknown("command of verydeep search", arguments[0], _COMMANDS)  # a search takes one configuration file
    return _search(read_options(SearchOptions, "search", arguments))


def _search(options: SearchOptions) -> int:
    check_study_options(options.jobs, options.heartbeat)
    if options.trials is not None and options.trials < 1:
        raise UserError(f"--trials must be at least 1, got {options.trials}")
    with status("loading PyTorch and Optuna", options.quiet):
        import optuna  # noqa: F401
        import torch  # noqa: F401
    from verydeep.search import check_search, read_search, start_search
    from verydeep.studies import Budget, make_study_progress, run_study

    config = read_search(options.config)
    given = {name: getattr(options, name) for name in ("trials", "sampler", "seed")}
    changes = {name: value for name, value in given.items() if value is not None}
    config = replace(config, options=replace(config.options, **changes))
    budget = Budget() if options.budget is None else Budget.read(options.budget)
    with status(f"reading {config.train.data.source}", options.quiet):
        config = check_search(config, options.root)
    folder = options.study or Path("runs") / f"search-{options.config.stem.removeprefix('search-')}"
    study = start_search(
        folder,
        config,
        storage=storage_address(options.storage, folder),
        artifacts=options.artifacts,
        heartbeat=options.heartbeat,
    )
    progress = make_study_progress(options.quiet)
    ending = run_study(study, jobs=options.jobs, budget=budget, root=options.root, progress=progress)
    if ending == "complete":
        if not options.quiet:
            echo(f"complete; the results: verydeep search show {quote(str(folder))}")
        return 0
    remedy = "a larger --budget" if budget.epochs is not None and ending != "interrupted" else "the same command"
    echo(f"verydeep: {ending}; everything is saved; continue with {remedy}", file=sys.stderr)
    return 130 if ending == "interrupted" else 0


def _show(options: SearchShowOptions) -> int:
    from verydeep.search import open_search, ranked, to_csv, to_json
    from verydeep.studies import storage_errors

    if options.top < 1:
        raise UserError(f"--top must be at least 1, got {options.top}")
    with storage_errors():
        study = open_search(options.study, storage=storage_address(options.storage, options.study))
        found = study.records()
    if options.json:
        echo(to_json(study, found), end="")
        return 0
    folder = options.out or options.study / "show"
    write_atomic(folder / "trials.csv", to_csv(found))
    write_atomic(folder / "trials.json", to_json(study, found))
    pictures = _draw(study, found, folder)
    _print(study, found, ranked(found, study.maximise)[: options.top])
    echo(f"{folder}: trials.csv, trials.json{''.join(f', {picture.name}' for picture in pictures)}")
    return 0


def _print(study: SearchStudy, found: list[TrainingRecord], best: list[TrainingRecord]) -> None:
    from verydeep.cli._console import console
    from verydeep.cli.views._search import progress, trials_table
    from verydeep.search import importance, scored

    console.print(trials_table(best, study.metric, width=console.width))
    diverged = sum(record.status == "diverged" for record in found)
    note = f"; {diverged} diverged" if diverged else ""
    console.print(progress(found) + note, highlight=False)
    if shares := importance(found, study.config.space, study.maximise):
        count = len(scored(found, study.maximise))
        few = "" if count >= _ENOUGH * len(shares) else f" (uncertain after only {plural(count, 'trial')})"
        listed = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
        console.print(f"importance{few}: {listed}", highlight=False)
    else:
        console.print("importance: unknown, with too few trials or only one setting that varies", highlight=False)


def _draw(study: SearchStudy, found: list[TrainingRecord], folder: Path) -> list[Path]:
    from verydeep.report import plot_parallel, plot_slices
    from verydeep.search import ranked

    if not any(record.value is not None for record in ranked(found, study.maximise)):
        return []
    paths = [folder / "slices.png", folder / "parallel.png"]
    for path, plot in zip(paths, (plot_slices, plot_parallel), strict=True):
        plot(found, study.config.space, study.metric, path)
    return paths


def _best(options: SearchBestOptions) -> int:
    from verydeep.config import to_dict, to_toml
    from verydeep.search import open_search, ranked
    from verydeep.studies import storage_errors, with_settings

    with storage_errors():
        study = open_search(options.study, storage=storage_address(options.storage, options.study))
        found = ranked(study.records(), study.maximise)
    if not found or found[0].value is None:
        raise UserError(f"{options.study}: no trial has a result yet")
    best, metric = found[0], study.metric
    config = with_settings(study.config.train, best.settings)
    if config.evaluate_test == "never":  # trials are not tested, but the training that was selected is
        config = replace(config, evaluate_test="end")
    path = options.out or options.study / "best.toml"
    head = f"# Trial {best.number} of study {study.name}: {metric} {best.value:.6g}, the best of {len(found)}.\n"
    write_atomic(path, head + to_toml(to_dict(config)))
    echo(f"{path}: trial {best.number}, {metric} {best.value:.6g}; train it with: verydeep train {quote(str(path))}")
    with storage_errors():
        run = study.fetch_run(best.name)
    echo(f"the run: {run}" if run else f"the run is on {best.host}, in {best.run}")
    return 0
