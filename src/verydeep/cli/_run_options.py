"""What the commands that look at a run's network share: its weights, the samples, and how they are called."""

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
    """A share as people write it: 0.1% or 0.001."""
    number, percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise UserError(f"--tolerance {text}: give a share of accuracy such as 0.1% or 0.001, from 0 to below 100%")
    return value


def data_label(source: str | None, split: str) -> str:
    """What results call the samples they are of: a part of the run's data, or the name of other data."""
    if source is None:
        return split
    path = Path(source).resolve()  # which has a name even for . and ..
    name = printable(path.name)
    return f"{name}/" if path.is_dir() else name  # whole, so that test.csv and test/ are no test split


def printable(name: str) -> str:
    """The name of a file or folder with ? for what is not UTF-8, which no picture can show."""
    return name.encode(errors="replace").decode()


def subsample(split: Split, samples: int | None) -> Split:
    """At most so many random samples; all where none are named."""
    from verydeep.analysis import some_samples

    some = split if samples is None else some_samples(split, samples)
    return cast("Split", some)


def load_model(run: Run) -> Network:
    """The run's network; whoever looks at one that has not finished is told so."""
    model = run.model
    if run.summary is None:
        print(f"verydeep: {run.path} has not finished: these are its weights so far", file=sys.stderr)
    return model
