"""Helpers of the commands that examine a run's network: its weights, the samples to use, and how to name them."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

from verydeep.errors import UserError

if TYPE_CHECKING:
    from verydeep.data import Split
    from verydeep.models import Network
    from verydeep.training import Run


def parse_tolerance(text: str) -> float:
    """Parse a share of accuracy, written as 0.1% or 0.001."""
    number, percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise UserError(f"--tolerance {text}: give a share of accuracy such as 0.1% or 0.001, from 0 to below 100%")
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
        print(f"verydeep: {run.path} has not finished: these are its weights so far", file=sys.stderr)
    return model
