"""Helpers of the commands that examine a run's network: its weights, the samples to use, and how to name them."""

from __future__ import annotations

import math
import sys
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, cast

from verydeep.cli._status import load_torch, status
from verydeep.errors import UserError
from verydeep.terminal import echo
from verydeep.training import resolve_pretrained

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verydeep.data import Split
    from verydeep.models import Network
    from verydeep.training import Evaluation, Run


@contextmanager
def computing(threads: int | None) -> Iterator[None]:
    """Compute with this number of threads inside the block; by default, as many as torch uses."""
    if threads is not None and not 1 <= threads <= 1024:
        raise UserError(f"--threads must be from 1 to 1024, got {threads}")
    load_torch()
    from verydeep.cpu import cpu_settings

    with cpu_settings(threads):
        yield


def free_threads() -> int:
    """As many threads as torch uses, but not more than there are free cores: more would wait for each other."""
    load_torch()
    from verydeep.training import choose_threads

    return choose_threads().number


def find_run(path: Path) -> Path:
    """The folder of a run, which may also be given by its name in the list of runs, or as pretrained:NAME."""
    if path.exists():
        return path
    if (known := resolve_pretrained(path)) != path:
        return known
    if not path.is_absolute() and (Path("runs") / path).exists():
        return Path("runs") / path
    from verydeep.training import list_runs

    folder = path.parent if path.parent != Path() else Path("runs")
    names = [str(folder / run.name) for run in list_runs(folder)] if folder.is_dir() else []
    near = get_close_matches(str(folder / path.name), names, n=1)
    hint = f"did you mean {near[0]}?" if near else "verydeep runs lists all runs"
    raise UserError(f"there is no run {path}; {hint}")


def open_run(path: Path) -> Run:
    """Open a run's folder; a folder that holds several runs is answered with their names."""
    from verydeep.training import Run

    path = find_run(path)
    if not (path / "config.json").exists():
        require_single_run(path)
    return Run.load(path)


def require_single_run(path: Path) -> None:
    """Raise a `UserError` that names the runs inside, if the folder is that of several seeds or of a search."""
    from verydeep.training import holds_seeds, list_runs

    if holds_seeds(path):
        runs = sorted(list_runs(path), key=lambda run: -(run.valid_accuracy or run.test_accuracy or 0))
        if not runs:
            raise UserError(f"{path} holds one run per seed, but none has been started yet")
        names = ", ".join(str(path / run.name) for run in runs[:5]) + (", ..." if len(runs) > 5 else "")
        raise UserError(f"{path} holds one run per seed; give one of them, best first: {names}")
    if (path / "study.json").exists():
        raise UserError(f"{path} is a study of several runs; verydeep runs {path} lists them; give one of them")


def read_samples(run: Run, source: str | None, split: str, root: Path | None) -> Split:
    """Read samples for the run's network: a split of its own data, or other data."""
    from verydeep.training import load_data

    with status(f"reading {source or run.config.data.source}"):
        return load_data(run, source, split, root)


def parse_tolerance(text: str) -> float:
    """Parse a loss of accuracy, written as 0.1% or 0.001."""
    number, percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise UserError(
            f"--tolerance {text}: give a loss of accuracy (or R2) such as 0.1% or 0.001, at least 0 and less than 100%"
        )
    return value


def data_label(source: str | None, split: str) -> str:
    """Name the samples that results belong to: a split of the run's own data, or the file or folder of other data."""
    if source is None:
        return split
    path = Path(source).resolve()  # . and .. have names, too
    name = printable(path.name)
    return f"{name}/" if path.is_dir() else name  # with suffix or slash, so that it never looks like the test split


def printable(name: str) -> str:
    """Replace what is not UTF-8 in the name of a file or folder by ?, because figures cannot show it."""
    return name.encode(errors="replace").decode()


def subsample(split: Split, samples: int | None) -> Split:
    """Draw at most `samples` random samples; None takes them all."""
    from verydeep.analysis import some_samples

    some = split if samples is None else some_samples(split, samples)
    return cast("Split", some)


def load_model(run: Run) -> Network:
    """Load the run's network, with a note on stderr if the run has not finished."""
    model = run.model
    if run.summary is None:
        echo(f"verydeep: {run.path} has not finished: these are its weights so far", file=sys.stderr)
    return model


def evaluate_run(run: Run, split: Split, device: str = "auto") -> Evaluation:
    """Compute the metrics of the run's network on some samples."""
    from verydeep.data import Task
    from verydeep.training import ProcessGroup, RunData, evaluate_metrics, run_objective

    data = RunData.load(run)
    task = data.task or Task("classification", data.classes)  # runs of earlier versions do not say
    with status(f"evaluating {len(split):,} samples"):
        return evaluate_metrics(run.model, split, task, ProcessGroup.join(device).device, objective=run_objective(run))
