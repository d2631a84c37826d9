"""`verydeep reproduce`: the paper's figures from our own runs."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from verydeep.errors import UserError, unknown
from verydeep.files import write_whole

if TYPE_CHECKING:
    from verydeep.experiments import Fig1

_FIGURES = ("fig1",)


@dataclass(frozen=True)
class Reproduce:
    """Figure 1: 100 random settings for each of 8 networks on MNIST; goes on from what is in the results."""

    figure: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="fig1")]
    """What to reproduce."""
    only: Annotated[str | None, tyro.conf.arg(metavar="NETWORK,...")] = None
    """Train these networks only, such as highway-50,plain-50; the figure shows all there is."""
    minutes: Annotated[float | None, tyro.conf.arg(metavar="N")] = None
    """Stop after so many minutes; 0 trains nothing and draws what there is."""
    jobs: Annotated[int, tyro.conf.arg(metavar="N")] = 2
    """Processes, with one thread each."""
    strict: bool = False
    """Train every setting to the full length, instead of the best by successive halving."""
    quick: bool = False
    """A tiny version on the digits, to see that everything works."""
    results: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where curves, figure and table are kept; results/fig1 unless given, runs/fig1-quick for the tiny version."""
    runs: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where trials under way are saved; runs/fig1 unless given."""
    root: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where known datasets are kept; $VERYDEEP_DATA or the user's cache unless given."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = tyro.cli(Reproduce, prog="verydeep reproduce", args=arguments)
    if options.figure not in _FIGURES:
        raise unknown("figure", options.figure, _FIGURES)
    if options.jobs < 1:
        raise UserError(f"--jobs must be at least 1, got {options.jobs}")
    from verydeep.training import interruptible

    study = _study(options)
    seconds = None if options.minutes is None else 60 * options.minutes
    with interruptible() as interrupt:
        if seconds != 0:
            for _, said in study.train(options.root, interrupt, seconds):
                print(said, flush=True)
    _write(study)
    if interrupt.requested:
        print("verydeep: interrupted and saved; the same command goes on", file=sys.stderr)
        return 130
    return 0


def _study(options: Reproduce) -> Fig1:
    from verydeep.experiments import HALVING, QUICK, Fig1, chosen, strict

    protocol = QUICK if options.quick else HALVING
    results = options.results or Path("runs/fig1-quick" if options.quick else "results/fig1")
    runs = options.runs or (results / "runs" if options.quick else Path("runs/fig1"))
    protocol = strict(protocol) if options.strict else protocol
    return Fig1(protocol, chosen(options.only), results, runs, options.jobs)


def _write(study: Fig1) -> None:
    """The figure, the table and the page, of all there is."""
    from verydeep.experiments import NETWORKS, best_curves, claim, fig1_text, mean_curves, ratio, table, table_lines
    from verydeep.report import plot_fig1

    found = study.read(NETWORKS)
    rows = table(found, study.protocol)
    for suffix in ("png", "svg"):
        plot_fig1(best_curves(found), mean_curves(found), study.results / f"fig1.{suffix}")
    values = {"ratio_at_100_layers": ratio(rows), "rows": [asdict(row) for row in rows]}
    write_whole(study.results / "table.json", json.dumps(values, indent=1) + "\n")
    write_whole(study.results / "fig1.md", fig1_text(found, study.protocol))
    print("\n".join(table_lines(rows)))
    print(claim(rows))
    print(f"{study.left(found)}; figure, table and analysis are in {study.results}")
