"""Figure 1 in words: the page beside the picture, written from the results alone."""

import math
from collections.abc import Sequence

from verydeep.nn import suggest_gate_bias
from verydeep.paper.fig1._claims import claim_lines
from verydeep.paper.fig1._gate_bias import OpenLayers, open_layers, recommended_gate_bias
from verydeep.paper.fig1._halving import epochs_left
from verydeep.paper.fig1._influence import Influence, influences
from verydeep.paper.fig1._protocol import Protocol
from verydeep.paper.fig1._summary import TOP, Row, describe_protocol, table
from verydeep.paper.fig1._trials import Results

_TITLE = "# Figure 1: training cross-entropy of plain and highway networks of 10 to 100 layers"
_RANGES = """Learning rate 1e-4 to 1 (log-uniform), momentum 0.5 to 0.99, decay factor 0.9 to 1 an epoch, tanh or relu,
and for highways a gate bias of -10 to -1: the same ranges and the same draws for both families and all depths."""


def fig1_text(found: Sequence[Results], protocol: Protocol) -> str:
    """The page, in Markdown."""
    rows, first = table(found, protocol), protocol.stages[0].epochs
    hours = sum(trial.seconds for result in found for trial in result.trials.values()) / 3600
    left = sum(epochs_left(result.trials, protocol) for result in found)
    parts = [
        _TITLE,
        f"Data: {protocol.data}. Protocol: {describe_protocol(protocol.stages)}. The loss is the mean cross-entropy "
        f"over the whole training set after each epoch, at its lowest; the {TOP} best are those where it is lowest. "
        f"It took {hours:.1f} hours of one core.",
        _RANGES,
        "\n".join(table_lines(rows)),
        "\n".join(claim_lines(rows, left)),
        unfinished(left),
        "## What matters",
        "\n".join(_influence_lines(influences(found, first), first)),
        "## Which gate bias",
        _gate_bias(open_layers(found, first), first),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def unfinished(epochs: int) -> str:
    """What a reader must know of a study that is under way."""
    return f"The study is not finished: {epochs:,} epochs of training are still to be done." if epochs else ""


def table_lines(rows: Sequence[Row]) -> list[str]:
    """The table, in Markdown; what has not been trained says so."""
    head = (
        "| network | parameters | settings | diverged | epochs of the best | best loss | mean of the 10 best | test |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        count = f"{row.settings[0]} of {row.settings[1]}"
        if row.best is None or row.top is None or row.test_accuracy is None:
            lines.append(f"| {row.network} | {row.parameters:,} | {count} | not yet run | | | | |")
            continue
        top = f"{row.top:.3g}" + ("" if row.top_count == TOP else f" (of {row.top_count})")
        cells = (row.network, f"{row.parameters:,}", count, row.diverged, row.epochs, f"{row.best:.3g}", top)
        lines.append("| " + " | ".join(map(str, cells)) + f" | {row.test_accuracy:.2%} |")
    return lines


def _influence_lines(found: Sequence[Influence], epochs: int) -> list[str]:
    if not found:
        return ["Not yet run."]
    lines = [
        f"Shares by functional ANOVA over the ranks of all settings after {epochs} epochs; the rest of the ten best.",
        "",
    ]
    lines += [
        "| network | what decides | learning rates of the 10 best | relu | gate bias of the 10 best |",
        "|---|---|---|---|---|",
    ]
    for each in found:
        shares = (
            ", ".join(f"{name.split('.')[1]} {share:.0%}" for name, share in each.shares.items()) or "too few trials"
        )
        rates, bias = (_spread(values) for values in (each.rates, each.gate_bias))
        lines.append(f"| {each.network} | {shares} | {rates} | {each.relu} of {each.count} | {bias} |")
    return lines


def _spread(values: tuple[float, float, float] | None) -> str:
    return "" if values is None else f"{values[0]:.2g} to {values[2]:.2g}, median {values[1]:.2g}"


def _gate_bias(rows: Sequence[OpenLayers], epochs: int) -> str:
    found = recommended_gate_bias(rows)
    if not found:
        return "Not yet run: highway networks are needed."
    depths = list(rows[0].settings)
    lines = [
        "What counts is how many layers are open at the start: depth times the sigmoid of the gate bias. Share of all "
        f"settings that are among the best third of their network after {epochs} epochs; a third would be chance.",
        "",
        "| open layers at the start | " + " | ".join(f"{depth} layers" for depth in depths) + " | all |",
        "|---" * (len(depths) + 2) + "|",
    ]
    for row in rows:
        cells = [_share(row.good[depth], row.settings[depth]) for depth in depths]
        cells.append(_share(sum(row.good.values()), sum(row.settings.values())))
        lines.append(f"| {_between(row)} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "![Every setting over its gate bias, and over how many layers start open](gate-bias.png)",
        "",
        "The rows around the best that are better than chance, as a gate bias; beyond 100 layers a guess. Beside it "
        "what `verydeep.nn.suggest_gate_bias` says.",
        "",
        "| depth | good | suggested |",
        "|---|---|---|",
    ]
    for depth, (low, high) in found.items():
        lines.append(f"| {depth} | {low:.1f} to {high:.1f} | {suggest_gate_bias(depth, 'linear'):.1f} |")
    return "\n".join(lines)


def _share(good: int, settings: int) -> str:
    return f"{good / settings:.0%} of {settings}" if settings else ""


def _between(row: OpenLayers) -> str:
    if row.low == 0:
        return f"below {row.high:g}"
    return f"{row.low:g} to {row.high:g}" if math.isfinite(row.high) else f"{row.low:g} and more"
