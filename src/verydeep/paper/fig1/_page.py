"""The page results/fig1/fig1.md and its tables, written from the recorded trials alone."""

from collections.abc import Sequence

from verydeep.nn import suggest_gate_bias
from verydeep.paper._markdown import render_markdown
from verydeep.paper.fig1._claims import claims
from verydeep.paper.fig1._gate_bias import open_layers, recommended_gate_bias
from verydeep.paper.fig1._halving import epochs_left
from verydeep.paper.fig1._influence import influences
from verydeep.paper.fig1._protocol import Protocol
from verydeep.paper.fig1._results import Fig1Results
from verydeep.paper.fig1._summary import TOP, Fig1Row, describe_protocol, fig1_rows


def fig1_page(results: Sequence[Fig1Results], protocol: Protocol) -> str:
    """The page, in Markdown."""
    rows, first = fig1_rows(results, protocol), protocol.stages[0].epochs
    by_openness = open_layers(results, first)
    return render_markdown(
        "fig1.md",
        data=protocol.data,
        protocol=describe_protocol(protocol.stages),
        hours=sum(trial.seconds for result in results for trial in result.trials.values()) / 3600,
        rows=rows,
        top=TOP,
        claims=claims(rows),
        epochs_left=sum(epochs_left(result.trials, protocol) for result in results),
        first_epochs=first,
        influences=influences(results, first),
        open_layers=by_openness,
        recommended=recommended_gate_bias(by_openness),
        suggest_gate_bias=suggest_gate_bias,
    )


def fig1_table_lines(rows: Sequence[Fig1Row]) -> list[str]:
    """The table of networks, in Markdown; those without trials are marked as not yet run."""
    return render_markdown("fig1-table.md", rows=rows, top=TOP).splitlines()


def claim_lines(rows: Sequence[Fig1Row], epochs_left: int = 0) -> list[str]:
    """The table of claims, in Markdown; while epochs are left to train, it says that verdicts are preliminary."""
    return render_markdown("fig1-claims.md", claims=claims(rows), epochs_left=epochs_left).splitlines()
