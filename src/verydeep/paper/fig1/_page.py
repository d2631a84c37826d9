"""The page results/fig1/fig1.md and its tables, written from the recorded trials alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from verydeep.nn import suggest_gate_bias
from verydeep.paper._templates import TEMPLATES
from verydeep.paper.fig1._claims import fig1_claims
from verydeep.paper.fig1._gate_bias import OpenLayers, open_layers, recommended_gate_bias
from verydeep.paper.fig1._halving import epochs_left
from verydeep.paper.fig1._influence import influences
from verydeep.paper.fig1._protocol import NETWORKS, Protocol
from verydeep.paper.fig1._results import Fig1Results
from verydeep.paper.fig1._summary import TOP, Fig1Row, describe_protocol, fig1_rows
from verydeep.report import render_markdown
from verydeep.search import Choices, Range

_NAMES = {
    "optim.lr": "learning rate",
    "optim.momentum": "momentum",
    "schedule.factor": "decay factor of the learning rate per epoch",
    "model.activation": "activation",
    "model.gate_bias": "gate bias (highway networks)",
}


@dataclass(frozen=True)
class SearchedRange:
    """A setting that is searched, and its values in words."""

    setting: str
    values: str


@dataclass(frozen=True)
class GoodGateBias:
    """The gate biases that did better than chance at a depth, and the one that is suggested."""

    depth: int
    low: float
    high: float
    suggested: float


def fig1_page(results: Sequence[Fig1Results], protocol: Protocol) -> str:
    """The page, in Markdown."""
    rows, first = fig1_rows(results, protocol), protocol.stages.epochs[0]
    by_openness = open_layers(results, first)
    return render_markdown(
        "fig1.md",
        TEMPLATES,
        data=protocol.data,
        protocol=describe_protocol(protocol.stages),
        hours=sum(trial.seconds for result in results for trial in result.trials.values()) / 3600,
        ranges=_ranges(),
        rows=rows,
        top=TOP,
        claims=fig1_claims(rows),
        epochs_left=sum(epochs_left(result.trials, protocol) for result in results),
        first_epochs=first,
        influences=influences(results, first),
        open_columns=[f"{depth} layers" for depth in by_openness[0].settings] + ["all"],
        open_rows=[_open_row(row) for row in by_openness],
        recommended=[
            GoodGateBias(depth, low, high, suggest_gate_bias(depth, "linear"))
            for depth, (low, high) in recommended_gate_bias(by_openness).items()
        ],
    )


def _ranges() -> list[SearchedRange]:
    space = {name: domain for network in NETWORKS for name, domain in network.space.items()}
    return [SearchedRange(_NAMES[name], _in_words(domain)) for name, domain in space.items()]


def _in_words(domain: Range | Choices) -> str:
    if isinstance(domain, Choices):
        return " or ".join(map(str, domain.choices))
    return f"{domain.low:g} to {domain.high:g}{', log-uniform' if domain.log else ''}"


def _open_row(row: OpenLayers) -> list[str]:
    """An interval, and by depth the fraction of its settings that are among the best third."""
    counts = [(row.good[depth], row.settings[depth]) for depth in row.settings]
    counts.append((sum(row.good.values()), sum(row.settings.values())))
    return [row.interval, *(f"{good / settings:.0%} of {settings}" if settings else "" for good, settings in counts)]


def fig1_table_lines(rows: Sequence[Fig1Row]) -> list[str]:
    """The table of networks, in Markdown; those without trials are marked as not yet run."""
    return render_markdown("fig1-table.md", TEMPLATES, rows=rows, top=TOP).splitlines()


def claim_lines(rows: Sequence[Fig1Row], epochs_left: int = 0) -> list[str]:
    """The table of claims, in Markdown; while epochs are left to train, it says that verdicts are preliminary."""
    return render_markdown("fig1-claims.md", TEMPLATES, claims=fig1_claims(rows), epochs_left=epochs_left).splitlines()
