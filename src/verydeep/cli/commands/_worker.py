"""`verydeep worker`: train for a study that was started here or on another machine."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from verydeep.cli._options import DataRoot, Quiet, option, positional, read_options
from verydeep.cli._status import load_torch
from verydeep.cli._study_options import (
    ArtifactFolder,
    BudgetText,
    Heartbeat,
    check_study_options,
    storage_address,
)
from verydeep.terminal import echo

if TYPE_CHECKING:
    from verydeep.studies import Study


@dataclass(frozen=True)
class WorkerOptions:
    """Train for a study, one training after another, until it is complete.

    A study is what verydeep train --seeds, search, reproduce and demo start. Any number of workers may join it, on this
    machine or on others. Ctrl-C or SIGTERM saves and leaves; another worker continues the training.
    """

    study: Annotated[Path, positional("STUDY")]
    """The study's folder, where runs are saved; with --storage, its name selects the study."""
    storage: Annotated[str | None, option("postgresql://...")] = None
    """The PostgreSQL server that records the study; by default, the value of $VERYDEEP_STORAGE, or what the study's
    folder says."""
    artifacts: ArtifactFolder = None
    only: Annotated[tuple[str, ...], option("GROUP,...")] = ()
    """Train only these groups of the study, such as highway-a-fast of the tables; by default, all."""
    budget: BudgetText = None
    heartbeat: Heartbeat = 15
    tensorboard: bool = False
    """Write TensorBoard events into the runs' folders."""
    root: DataRoot = None
    quiet: Quiet = False


OPTIONS = {"worker": WorkerOptions}


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = read_options(WorkerOptions, "worker", arguments)
    check_study_options(heartbeat=options.heartbeat)
    load_torch(options.quiet)
    from verydeep.studies import BUSY, Budget, with_retry, work
    from verydeep.training import interruptible

    budget = Budget() if options.budget is None else Budget.read(options.budget)
    began = time.monotonic()
    with interruptible() as interrupt:
        study = with_retry(partial(_open, options), BUSY)
        complete = work(
            study,
            root=options.root,
            budget=budget,
            only=options.only or None,
            tensorboard=options.tensorboard,
            report=_silent if options.quiet else partial(print, flush=True),
        )
    if complete:
        if not options.quiet:
            echo("the study is complete")
        return 0
    if interrupt.requested and (budget.seconds is None or time.monotonic() - began < budget.seconds):
        echo("verydeep: stopped; everything is saved", file=sys.stderr)
        return 130
    echo("verydeep: the budget is used up; everything is saved", file=sys.stderr)
    return 0


def _open(options: WorkerOptions) -> Study:
    from verydeep.errors import unknown
    from verydeep.studies import open_study, storage_errors

    storage = storage_address(options.storage, options.study)
    with storage_errors():
        study = open_study(options.study, storage=storage, artifacts=options.artifacts, heartbeat=options.heartbeat)
        names = {group.name for group in study.groups}
    for name in options.only:
        if name not in names:
            raise unknown("group of this study", name, sorted(names))
    return study


def _silent(line: str) -> None:
    """Print nothing."""
