"""`verydeep search`: train with many settings drawn from a space, join as a worker, and show the results."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from verydeep.cli._options import DataRoot, Quiet, option, positional, read_options
from verydeep.cli._status import status
from verydeep.cli.commands._train import reject_former_names
from verydeep.errors import UserError, unknown
from verydeep.files import write_atomic
from verydeep.words import plural

if TYPE_CHECKING:
    from verydeep.search import Study, TrialRecord

_Folder = Annotated[Path, option("FOLDER")]
_Study = Annotated[Path, positional("STUDY")]
_Url = Annotated[str | None, option("postgresql://...")]
_COMMANDS = ("worker", "show", "best")
_ENOUGH = 10  # trials per field, below which shares of importance are still uncertain


@dataclass(frozen=True)
class SearchOptions:
    """Train with many settings in parallel; if it is stopped, the same command continues the search.

    search worker      Join a running search, from any machine.
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
    jobs: Annotated[int | None, option("N")] = None
    """The number of workers, each with one thread; by default, one per core."""
    budget: Annotated[str | None, option("TIME_OR_EPOCHS")] = None
    """Stop after a time (30min, 2h) or a number of epochs over all trials (500 epochs)."""
    sampler: Annotated[Literal["random", "tpe"] | None, option("random|tpe")] = None
    """Draw settings at random, as in the paper, or with TPE, which learns from earlier trials."""
    seed: Annotated[int | None, option("N")] = None
    """The random seed for drawing settings."""
    storage: _Url = None
    """Store the study on a PostgreSQL server, so that workers on other machines can join."""
    heartbeat: Annotated[int, option("SECONDS")] = 15
    """Seconds between the workers' heartbeats; a worker that misses four is considered dead, and its trial is continued
    by another."""
    root: DataRoot = None
    quiet: Quiet = False


@dataclass(frozen=True)
class SearchWorkerOptions:
    """Join a running search, with one thread, until it is complete."""

    study: _Folder
    """The study's folder, where runs are saved; with --storage, its name selects the study."""
    storage: _Url = None
    """The PostgreSQL server that stores the study."""
    budget: Annotated[str | None, option("TIME_OR_EPOCHS")] = None
    """Stop after a time (30min, 2h) or a number of epochs over all trials (500 epochs)."""
    heartbeat: Annotated[int, option("SECONDS")] = 15
    """Seconds between heartbeats; the same as in the search."""
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
    """Write the configuration of the best trial, ready for verydeep train."""

    study: _Study
    """The study's folder."""
    out: Annotated[Path | None, option("FILE.toml", aliases=("-o",))] = None
    """The file to write; by default, STUDY/best.toml."""
    storage: _Url = None
    """The PostgreSQL server that stores the study, if its address needs a password."""


OPTIONS = {
    "search": SearchOptions,
    "search worker": SearchWorkerOptions,
    "search show": SearchShowOptions,
    "search best": SearchBestOptions,
}


def main(arguments: list[str]) -> int:
    """Run the command."""
    reject_former_names(arguments)
    if arguments[:1] == ["worker"]:
        return _worker(read_options(SearchWorkerOptions, "search worker", arguments[1:]))
    if arguments[:1] == ["show"]:
        return _show(read_options(SearchShowOptions, "search show", arguments[1:]))
    if arguments[:1] == ["best"]:
        return _best(read_options(SearchBestOptions, "search best", arguments[1:]))
    if len(arguments) > 1 and re.fullmatch("[a-z]+", arguments[0]) and not arguments[1].startswith("-"):
        raise unknown("command of verydeep search", arguments[0], _COMMANDS)  # a search takes one configuration file
    return _search(read_options(SearchOptions, "search", arguments))


def _search(options: SearchOptions) -> int:
    _check_counts(options)
    with status("loading PyTorch and Optuna", options.quiet):
        import optuna  # noqa: F401
        import torch  # noqa: F401
    from verydeep.cli.views._search import make_search_progress
    from verydeep.search import Budget, Workers, check_search, read_search, search, start_study

    config = read_search(options.config)
    given = {name: getattr(options, name) for name in ("trials", "sampler", "seed")}
    changes = {name: value for name, value in given.items() if value is not None}
    config = replace(config, options=replace(config.options, **changes))
    budget = Budget() if options.budget is None else Budget.read(options.budget)
    with status(f"reading {config.train.data.source}", options.quiet):
        config = check_search(config, options.root)
    folder = options.study or Path("runs") / f"search-{options.config.stem.removeprefix('search-')}"
    study = start_study(folder, config, options.storage, options.heartbeat)
    workers = Workers(options.jobs, options.storage, options.heartbeat, options.root)
    ending = search(study, folder, workers, budget, make_search_progress(options.quiet))
    if ending == "complete":
        if not options.quiet:
            print(f"complete; the results: verydeep search show {folder}")
        return 0
    remedy = "a larger --budget" if budget.epochs is not None and ending != "interrupted" else "the same command"
    print(f"verydeep: {ending}; everything is saved; continue with {remedy}", file=sys.stderr)
    return 130 if ending == "interrupted" else 0


def _worker(options: SearchWorkerOptions) -> int:
    from verydeep.search import Budget, open_study, work

    _check_counts(options)
    budget = Budget() if options.budget is None else Budget.read(options.budget)
    study = open_study(options.study, options.storage, options.heartbeat)
    say = _silent if options.quiet else partial(print, flush=True)
    complete = work(study, options.study, options.root, budget, say)
    if complete:
        say(f"complete; the results: verydeep search show {options.study}")
    else:
        print("verydeep: stopped; everything is saved", file=sys.stderr)
    return 0


def _silent(line: str) -> None:
    """Print nothing."""


def _check_counts(options: SearchOptions | SearchWorkerOptions) -> None:
    for name in ("jobs", "trials", "heartbeat"):
        value = getattr(options, name, None)
        if value is not None and value < 1:
            raise UserError(f"--{name} must be at least 1, got {value}")


def _show(options: SearchShowOptions) -> int:
    from verydeep.search import open_study, ranked, records, storage_errors, to_csv, to_json

    if options.top < 1:
        raise UserError(f"--top must be at least 1, got {options.top}")
    with storage_errors():
        study = open_study(options.study, options.storage)
        found = records(study)
    if options.json:
        print(to_json(study, found), end="")
        return 0
    folder = options.out or options.study / "show"
    write_atomic(folder / "trials.csv", to_csv(found))
    write_atomic(folder / "trials.json", to_json(study, found))
    pictures = _draw(study, found, folder)
    _print(study, found, ranked(found, study.config.maximise)[: options.top])
    print(f"{folder}: trials.csv, trials.json{''.join(f', {picture.name}' for picture in pictures)}")
    return 0


def _print(study: Study, found: list[TrialRecord], best: list[TrialRecord]) -> None:
    from verydeep.cli._console import console
    from verydeep.cli.views._search import progress, trials_table
    from verydeep.search import importance, scored

    console.print(trials_table(best, study.config.metric, width=console.width))
    diverged = sum(record.status == "diverged" for record in found)
    note = f"; {diverged} diverged" if diverged else ""
    console.print(progress(found, 1).split(", about")[0] + note, highlight=False)
    if shares := importance(found, study.config.space, study.config.maximise):
        count = len(scored(found, study.config.maximise))
        few = "" if count >= _ENOUGH * len(shares) else f" (uncertain after only {plural(count, 'trial')})"
        listed = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
        console.print(f"importance{few}: {listed}", highlight=False)
    else:
        console.print("importance: unknown, with too few trials or only one setting that varies", highlight=False)


def _draw(study: Study, found: list[TrialRecord], folder: Path) -> list[Path]:
    from verydeep.report import plot_parallel, plot_slices
    from verydeep.search import ranked

    if not any(record.value is not None for record in ranked(found, study.config.maximise)):
        return []
    paths = [folder / "slices.png", folder / "parallel.png"]
    for path, plot in zip(paths, (plot_slices, plot_parallel), strict=True):
        plot(found, study.config.space, study.config.metric, path)
    return paths


def _best(options: SearchBestOptions) -> int:
    from verydeep.config import to_dict, to_toml
    from verydeep.search import open_study, ranked, records, storage_errors, with_settings

    with storage_errors():
        study = open_study(options.study, options.storage)
        found = ranked(records(study), study.config.maximise)
    if not found or found[0].value is None:
        raise UserError(f"{options.study}: no trial has a result yet")
    best, metric = found[0], study.config.metric
    config = with_settings(study.config.train, best.settings)
    path = options.out or options.study / "best.toml"
    head = f"# Trial {best.trial} of study {study.name}: {metric} {best.value:.6g}, the best of {len(found)}.\n"
    write_atomic(path, head + to_toml(to_dict(config)))
    print(f"{path}: trial {best.trial}, {metric} {best.value:.6g}; train it with: verydeep train {path}")
    return 0
