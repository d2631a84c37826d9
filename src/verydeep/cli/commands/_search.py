"""`verydeep search`: many trainings with settings drawn from a space; and what came of them."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import tyro

from verydeep.cli._options import read_options
from verydeep.errors import UserError, unknown

_Folder = Annotated[Path, tyro.conf.arg(metavar="FOLDER")]
_Url = Annotated[str | None, tyro.conf.arg(metavar="postgresql://...")]
_COMMANDS = ("worker", "show", "best")
_MORE = """

also: verydeep search worker --study FOLDER     join a search that has been started, from any machine
      verydeep search show STUDY                the best trials, what mattered, pictures, CSV and JSON
      verydeep search best STUDY                the best trial's configuration, ready for verydeep train"""


@dataclass(frozen=True)
class Search:
    """Train with many settings, side by side; the same command goes on where it was stopped."""

    config: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CONFIG.toml")]
    """A training configuration with a [search.space] table."""
    study: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where the trials go; runs/search-CONFIG unless given. Its name is the study's name in a server."""
    trials: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """How many settings; what the file says, or 100, unless given."""
    jobs: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Workers at once, one thread each; one for every core unless given."""
    budget: Annotated[str | None, tyro.conf.arg(metavar="TIME_OR_EPOCHS")] = None
    """Stop after a time (30min, 2h) or when all trials together have trained so long (500 epochs)."""
    sampler: Literal["random", "tpe"] | None = None
    """At random as in the paper, or by TPE, which learns from the trials before."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Decides the settings of every trial."""
    storage: _Url = None
    """Keep the trials in a PostgreSQL server, so that workers on other machines can join."""
    heartbeat: Annotated[int, tyro.conf.arg(metavar="SECONDS")] = 15
    """How often workers tell the server that they live; after four times that, another takes their trial."""
    root: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where known datasets are kept; $VERYDEEP_DATA or the user's cache unless given."""
    quiet: bool = False
    """Print nothing but errors."""


@dataclass(frozen=True)
class Worker:
    """Join a search that has been started, with one thread, until it is complete."""

    study: _Folder
    """The study's folder; with --storage, its name says which study, and runs go there."""
    storage: _Url = None
    """The PostgreSQL server that keeps the study."""
    budget: Annotated[str | None, tyro.conf.arg(metavar="TIME_OR_EPOCHS")] = None
    """Stop after a time (30min, 2h) or when all trials together have trained so long (500 epochs)."""
    heartbeat: Annotated[int, tyro.conf.arg(metavar="SECONDS")] = 15
    """As the search was started with."""
    root: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where known datasets are kept; $VERYDEEP_DATA or the user's cache unless given."""
    quiet: bool = False
    """Print nothing but errors."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    if arguments[:1] == ["worker"]:
        return _worker(read_options(Worker, "search worker", arguments[1:]))
    if arguments[:1] in (["show"], ["best"]):
        from verydeep.cli.commands import _search_results

        return _search_results.main(arguments)
    if len(arguments) > 1 and re.fullmatch("[a-z]+", arguments[0]) and not arguments[1].startswith("-"):
        raise unknown("command of verydeep search", arguments[0], _COMMANDS)  # a configuration stands alone
    return _search(read_options(Search, "search", arguments, description=(Search.__doc__ or "") + _MORE))


def _search(options: Search) -> int:
    from verydeep.cli.views._search import make_search_report
    from verydeep.search import Budget, Workers, check_search, read_search, search, start_study

    _check_counts(options)
    config = read_search(options.config)
    given = {name: getattr(options, name) for name in ("trials", "sampler", "seed")}
    changes = {name: value for name, value in given.items() if value is not None}
    config = replace(config, options=replace(config.options, **changes))
    budget = Budget() if options.budget is None else Budget.read(options.budget)
    config = check_search(config, options.root)
    folder = options.study or Path("runs") / f"search-{options.config.stem.removeprefix('search-')}"
    study = start_study(folder, config, options.storage, options.heartbeat)
    workers = Workers(options.jobs, options.storage, options.heartbeat, options.root)
    ending = search(study, folder, workers, budget, make_search_report(options.quiet))
    if ending == "complete":
        if not options.quiet:
            print(f"complete; the results: verydeep search show {folder}")
        return 0
    more = "a larger --budget" if budget.epochs is not None and ending != "interrupted" else "the same command"
    print(f"verydeep: {ending}; everything is saved, {more} goes on", file=sys.stderr)
    return 130 if ending == "interrupted" else 0


def _worker(options: Worker) -> int:
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
    """Say nothing."""


def _check_counts(options: Search | Worker) -> None:
    for name in ("jobs", "trials", "heartbeat"):
        value = getattr(options, name, None)
        if value is not None and value < 1:
            raise UserError(f"--{name} must be at least 1, got {value}")
