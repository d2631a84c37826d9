"""Options of the commands that run a study: where it is recorded, and how many workers there are."""

import os
from pathlib import Path
from typing import Annotated

from verydeep.cli._options import option
from verydeep.errors import UserError

STORAGE_VARIABLE = "VERYDEEP_STORAGE"

Storage = Annotated[
    str | None,
    option(
        "postgresql://...",
        "Record the study on a PostgreSQL server, so that workers on other machines can join (verydeep worker); by "
        f"default, the value of ${STORAGE_VARIABLE}, or a journal file in the study's folder. A study stays where it "
        "was started.",
    ),
]
ArtifactFolder = Annotated[
    Path | None,
    option(
        "FOLDER",
        "A folder shared by the machines, for weights that workers need from each other: those of teachers, and the "
        "best.",
    ),
]
Heartbeat = Annotated[
    int,
    option(
        "SECONDS",
        "Seconds between the workers' heartbeats to a server; a worker that misses four is considered dead, and "
        "another continues its training.",
    ),
]
Jobs = Annotated[
    int | None,
    option(
        "N",
        "The number of workers on this machine, each with one thread; by default, one per core. With 0, wait for "
        "workers elsewhere.",
    ),
]
BudgetText = Annotated[
    str | None,
    option("TIME_OR_EPOCHS", "Stop after a time (30min, 2h) or a number of epochs over all trainings (500 epochs)."),
]


def storage_address(given: str | None, folder: Path | None) -> str | None:
    """The address of the server that records the study in a folder, or in a new one; None for a journal file.

    It is the option, or the environment variable, which other users of the machine cannot read. The variable is only a
    default: a study that has a journal file keeps it.
    """
    has_journal = folder is not None and (folder / "journal.log").exists()
    return given or (None if has_journal else os.environ.get(STORAGE_VARIABLE)) or None


def check_study_options(jobs: int | None = None, heartbeat: int = 1) -> None:
    """Refuse numbers that make no sense."""
    if jobs is not None and jobs < 0:
        raise UserError(f"--jobs must be 0 or more, got {jobs}")
    if heartbeat < 1:
        raise UserError(f"--heartbeat must be at least 1, got {heartbeat}")
