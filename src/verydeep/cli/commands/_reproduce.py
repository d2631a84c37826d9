"""`verydeep reproduce`: train the networks of the paper's Figure 1 and tables, and write what was measured."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

import tyro

from verydeep.cli._options import DataRoot, option, read_options
from verydeep.errors import UserError, unknown

_TABLES = ("table1", "table2", "table3")
_WHAT = ("fig1", *_TABLES, "all")
_OF_FIG1, _OF_TABLES = ("strict",), ("seeds", "recipe", "epochs", "threads")


@dataclass(frozen=True)
class ReproduceOptions:
    """Train the networks of a table or figure of the paper, continuing from the results so far.

    fig1: 100 random settings for each of 8 networks of 10 to 100 layers on MNIST.

    table1: convolutional highway networks on MNIST.

    table2: FitNets and highway networks on CIFAR-10.

    table3: the 19-layer highway network and its peers on CIFAR-10 and CIFAR-100.

    all: the tables, then fig1.
    """

    what: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="|".join(_WHAT))]
    """What to reproduce."""
    only: Annotated[str | None, option("NAME,...")] = None
    """Train only these networks, such as highway-50,plain-50 of fig1 or highway-a of table2; all results are shown."""
    seeds: Annotated[str | None, option("N|0,1,...")] = None
    """Tables: how many seeds, or which; by default, as many as the paper reports."""
    recipe: Literal["fast", "paper"] = "fast"
    """Tables: paper means the authors' settings, as far as they are known, for 300 to 400 epochs; fast means our own
    settings, for a tenth of that."""
    epochs: Annotated[int | None, option("N")] = None
    """Tables: train only the first N epochs of the recipe for now."""
    minutes: Annotated[float | None, option("N")] = None
    """Stop after N minutes; 0 trains nothing and shows the results so far."""
    jobs: Annotated[int, tyro.conf.arg(metavar="N")] = 2
    """The number of processes; tables use one if there is a GPU."""
    threads: Annotated[int, tyro.conf.arg(metavar="N")] = 1
    """Tables: the number of CPU threads per process."""
    strict: bool = False
    """Figure 1: train every setting for all epochs, without successive halving."""
    quick: bool = False
    """Train a tiny version on the digits, to check that everything works."""
    results: Annotated[Path | None, option("FOLDER")] = None
    """The folder for the results; by default, results, or runs/quick with --quick. For fig1 alone, the folder of the
    figure; by default, results/fig1 or runs/fig1-quick."""
    runs: Annotated[Path | None, option("FOLDER")] = None
    """The folder for unfinished runs, in its folders tables and fig1; by default, runs."""
    root: DataRoot = None


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
        print("verydeep: interrupted and saved; the same command continues", file=sys.stderr)
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
        raise UserError("--only selects networks of one table or figure; name it instead of all")
    foreign = _OF_TABLES if options.what == "fig1" else _OF_FIG1 if options.what != "all" else ()
    defaults = {field.name: field.default for field in fields(options)}
    for name in foreign:
        if getattr(options, name) != defaults[name]:
            raise UserError(f"--{name} does not apply to {options.what}")
