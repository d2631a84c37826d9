"""`verydeep reproduce`: the paper's tables and figures from our own runs."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

import tyro

from verydeep.cli._options import read_options
from verydeep.errors import UserError, unknown

_TABLES = ("table1", "table2", "table3")
_WHAT = ("fig1", *_TABLES, "all")
_OF_FIG1, _OF_TABLES = ("strict",), ("seeds", "recipe", "epochs", "threads")


@dataclass(frozen=True)
class ReproduceOptions:
    """Train the networks of a table or figure of the paper; goes on from what is in the results.

    fig1: 100 random settings for each of 8 networks of 10 to 100 layers on MNIST.

    table1: convolutional highway networks on MNIST.

    table2: FitNets and highway networks on CIFAR-10.

    table3: the 19-layer highway network and its peers on CIFAR-10 and CIFAR-100.

    all: the tables, then fig1.
    """

    what: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="|".join(_WHAT))]
    """What to reproduce."""
    only: Annotated[str | None, tyro.conf.arg(metavar="NAME,...")] = None
    """Train these only, such as highway-50,plain-50 of fig1 or highway-a of table2; all there is is shown."""
    seeds: Annotated[str | None, tyro.conf.arg(metavar="N|0,1,...")] = None
    """Tables: how many seeds, or which; as many as the paper reports unless given."""
    recipe: Literal["fast", "paper"] = "fast"
    """Tables: the authors' settings, where they are known, for 300 to 400 epochs, or our own for a tenth of that."""
    epochs: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Tables: stop for now after so many epochs of the recipe."""
    minutes: Annotated[float | None, tyro.conf.arg(metavar="N")] = None
    """Stop after so many minutes; 0 trains nothing and shows what there is."""
    jobs: Annotated[int, tyro.conf.arg(metavar="N")] = 2
    """Processes; for tables one where there is a GPU."""
    threads: Annotated[int, tyro.conf.arg(metavar="N")] = 1
    """Tables: CPU threads of each process."""
    strict: bool = False
    """Figure 1: train every setting to the full length, instead of the best by successive halving."""
    quick: bool = False
    """A tiny version on the digits, to see that everything works."""
    resume: bool = False
    """Go on; it does so anyway."""
    results: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where results are kept: results unless given, runs/quick for the tiny version; of fig1 alone its own folder,
    results/fig1."""
    runs: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where trainings under way are saved, in its folders tables and fig1; runs unless given."""
    root: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where known datasets are kept; $VERYDEEP_DATA or the user's cache unless given."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = read_options(ReproduceOptions, "reproduce", arguments)
    _check(options)
    from verydeep.cli.commands._reproduce_fig1 import reproduce_fig1
    from verydeep.cli.commands._reproduce_tables import reproduce_tables
    from verydeep.training import interruptible

    began = time.monotonic()
    with interruptible() as interrupt:
        if options.what != "fig1":
            tables = _TABLES if options.what == "all" else (options.what,)
            reproduce_tables(options, tables, interrupt, _seconds(options))
        if options.what in ("fig1", "all") and not interrupt.requested:
            reproduce_fig1(options, interrupt, _seconds(options, time.monotonic() - began))
    if interrupt.requested:
        print("verydeep: interrupted and saved; the same command goes on", file=sys.stderr)
        return 130
    return 0


def _seconds(options: ReproduceOptions, spent: float = 0.0) -> float | None:
    return None if options.minutes is None else max(0.0, 60 * options.minutes - spent)


def _check(options: ReproduceOptions) -> None:
    if options.what not in _WHAT:
        raise unknown("table or figure", options.what, _WHAT)
    for name in ("jobs", "threads", "epochs"):
        if (value := getattr(options, name)) is not None and value < 1:
            raise UserError(f"--{name} must be at least 1, got {value}")
    if options.minutes is not None and not options.minutes >= 0:
        raise UserError(f"--minutes must be 0 or more, got {options.minutes}")
    if options.what == "all" and options.only is not None:
        raise UserError("--only chooses within one table or figure; name it instead of all")
    foreign = _OF_TABLES if options.what == "fig1" else _OF_FIG1 if options.what != "all" else ()
    defaults = {field.name: field.default for field in fields(options)}
    for name in foreign:
        if getattr(options, name) != defaults[name]:
            raise UserError(f"--{name} is not for {options.what}")
