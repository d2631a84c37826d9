"""Removing a run from the disk."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

from verydeep.errors import UserError
from verydeep.files import cannot_write
from verydeep.lock import exclusive_lock
from verydeep.training.run._run import Run
from verydeep.training.run._seed_runs import SEEDS_FILE, holds_seeds

_MARKS = ("config.json", SEEDS_FILE)


def check_removable(path: str | Path) -> list[Path]:
    """List the runs that `remove_run` would remove; raises a `UserError` if it would refuse."""
    path = Path(path)
    if path.is_symlink():
        raise UserError(f"{path} is a link; remove the run that it points to")
    if not path.is_dir():
        raise UserError(f"{path}: no such run")
    if not any((path / mark).is_file() for mark in _MARKS):
        raise UserError(f"{path} is not a run: it has no {' or '.join(_MARKS)}; nothing was removed")
    if (path / "study.json").exists() and not holds_seeds(path):
        raise UserError(f"{path} is a study, not a run; nothing was removed")
    here = Path.cwd().resolve()
    if path.resolve() == here or path.resolve() in here.parents:
        raise UserError(f"{path} contains the working directory; change to another one first")
    if (path / "config.json").is_file():
        return [path]
    return sorted(child for child in path.iterdir() if (child / "config.json").is_file())


def remove_run(path: Run | str | os.PathLike[str]) -> None:
    """Delete a run's folder, or a folder with one run per seed, with everything in it.

    The folder is renamed first, so that it is never visible half deleted.

    Args:
        path: The run or its folder, or that of several seeds (`verydeep.studies.Seeds`).

    Raises:
        UserError: It is not a run, or a process is training it.

    Examples:
        >>> from verydeep.training import remove_run
        >>> remove_run("runs/none")
        Traceback (most recent call last):
        ...
        verydeep.errors.UserError: runs/none: no such run
    """
    path = path.path if isinstance(path, Run) else Path(path)
    locks = [run / "lock" for run in check_removable(path)]
    if holds_seeds(path):
        locks += [path / "lock", *(path / "workers").glob("*.lock")]
    with ExitStack() as stack:
        for lock in locks:
            busy = f"{path} is being trained by another process; stop it first"
            stack.enter_context(exclusive_lock(lock, busy, wait=False))
        doomed = path.parent.resolve() / f".{path.resolve().name}.{uuid4().hex}.removed"  # "a/../a" ends with a
        try:
            path.rename(doomed)
        except OSError as error:
            raise cannot_write(path, error) from error
    try:
        shutil.rmtree(doomed)
    except OSError as error:
        raise UserError(f"{path} was removed, but {doomed} cannot be deleted ({error.strerror or error})") from error
