"""`verydeep reproduce fig1`: train random settings at every depth, and draw Figure 1 from the best."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from verydeep.files import write_atomic

if TYPE_CHECKING:
    from verydeep.cli.commands._reproduce import ReproduceOptions
    from verydeep.paper import Fig1
    from verydeep.training import Interrupt


def reproduce_fig1(options: ReproduceOptions, interrupt: Interrupt, seconds: float | None) -> None:
    """Train for the given time, then write and print all results so far."""
    study = _study(options)
    if seconds != 0:
        for _, said in study.train(options.root, interrupt, seconds):
            print(said, flush=True)
    _write(study, options.quick)


def _study(options: ReproduceOptions) -> Fig1:
    from verydeep.paper import HALVING, QUICK, Fig1, selected_networks, without_halving

    protocol = QUICK if options.quick else HALVING
    results = options.results or Path("runs/fig1-quick" if options.quick else "results/fig1")
    if options.what == "all" and options.results:  # the folder of everything
        results = options.results / "fig1"
    own = options.quick and options.runs is None
    runs = results / "runs" if own else (options.runs or Path("runs")) / "fig1"
    protocol = without_halving(protocol) if options.strict else protocol
    return Fig1(protocol, selected_networks(options.only), results, runs, options.jobs)


def _write(study: Fig1, quick: bool) -> None:
    """Write the figure, the table and the pages from all results so far."""
    from verydeep.paper import (
        NETWORKS,
        best_curves,
        claim_lines,
        epochs_left,
        fig1_page,
        fig1_rows,
        fig1_table_lines,
        gate_biases,
        loss_ratio,
        mean_curves,
        write_page,
    )
    from verydeep.report import plot_fig1, plot_gate_bias

    found = study.read(NETWORKS)
    rows = fig1_rows(found, study.protocol)
    for suffix in ("png", "svg"):
        plot_fig1(best_curves(found), mean_curves(found), study.results / f"fig1.{suffix}")
    epochs = study.protocol.stages[0].epochs
    plot_gate_bias(gate_biases(found, epochs), study.results / "gate-bias.png", epochs)
    left = sum(epochs_left(result.trials, study.protocol) for result in found)
    values = {"ratio_at_100_layers": loss_ratio(rows), "epochs_left": left, "rows": [asdict(row) for row in rows]}
    write_atomic(study.results / "table.json", json.dumps(values, indent=1) + "\n")
    write_atomic(study.results / "fig1.md", fig1_page(found, study.protocol))
    print("\n".join(fig1_table_lines(rows)))
    print("\n".join(["", *claim_lines(rows, left), ""]))
    print(f"{study.time_left(found)}; figure, table and analysis are in {study.results}")
    if study.results.name == "fig1":  # among the other results, not in a folder of its own
        print(f"everything measured so far: {write_page(study.results.parent, quick)}")
