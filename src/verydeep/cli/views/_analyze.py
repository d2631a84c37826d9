"""Output of `verydeep analyze`: the tables it prints and its summary.json."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from verydeep.cli._console import console, print_line, right_aligned_table
from verydeep.cli._run_usage import usage_lines
from verydeep.terminal import echo
from verydeep.words import MEASURES, named_score, score

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from verydeep.analysis import Findings, LesionStudy, Observations, RefusedBlock

_MOST_IMPORTANT = 10  # layers in the table


def summarise(
    network: dict[str, str],
    source: str | None,
    split: str | None,
    samples: int | None,
    found: Findings,
    refused: Sequence[RefusedBlock] = (),
) -> dict[str, Any]:
    """Collect the results that fit on a page, as plain values for JSON.

    Args:
        network: Which network it is, such as the path of a run.
        source: The name or path of other data; None for the run's own.
        split: The split; None if the data has no splits.
        samples: How many samples were used; None if that is not known.
        found: The results.
        refused: The blocks that cannot be closed.
    """
    summary: dict[str, Any] = {**network, "source": source, "split": split, "samples": samples}
    summary["observations"] = asdict(found.observations)
    if found.lesions is not None:
        lesions = found.lesions
        name = lesions.measure
        summary["baseline"] = {"loss": lesions.baseline.loss, name: lesions.baseline.accuracy}
        noise = np.full(len(lesions.layers), np.nan) if lesions.standard_error is None else lesions.standard_error
        rows = zip(lesions.layers, lesions.loss, 1 - lesions.error, noise, strict=True)
        summary["lesions"] = [
            {"layer": layer, "loss": _finite(float(loss)), name: float(value), "standard_error": _finite(float(error))}
            for layer, loss, value, error in rows
        ]
    if refused:
        summary["refused"] = [asdict(each) for each in refused]
    if found.usage is not None:
        from verydeep.report import summarise_usage

        summary["usage"] = summarise_usage(found.usage)
    if found.routing is not None:
        routing = found.routing
        summary["routing"] = {
            "grouped_by": routing.grouped_by,
            "groups": list(routing.classes),
            "significant": routing.significant,
            "probe_accuracy": _finite(routing.probe_accuracy),
            "probe_chance": _finite(routing.probe_chance),
        }
    return summary


def print_refused(refused: Sequence[RefusedBlock]) -> None:
    """Say on stderr which blocks cannot be closed, one line per reason."""
    from verydeep.analysis import refusal_lines

    for line in refusal_lines(refused):
        echo(f"verydeep: {line}", file=sys.stderr)


def print_findings(found: Findings, folder: Path) -> None:
    """Print the results as tables and sentences."""
    if found.lesions is not None and found.lesions.most_important:
        console.print(_important_layers(found.lesions))
    if found.gates is not None or (found.lesions is None and found.flow == ()):
        observed = _observations(found.observations)
        if observed.row_count:
            console.print(observed)
    for line in _lines(found):
        console.print(line, highlight=False, markup=False)
    print_line(f"summary.json and the results are in {folder}")


def _lines(found: Findings) -> list[str]:
    from verydeep.analysis import idle_alone

    lines = []
    if found.routing is not None:
        routing = found.routing
        lines.append(
            f"Routing: {routing.significant:.0%} of the differences between a {routing.grouped_by} and all samples "
            f"exceed three standard errors; a linear classifier predicts the {routing.grouped_by} of "
            f"{routing.probe_accuracy:.1%} of {routing.probe_samples:,} samples from the gates alone (most frequent "
            f"{routing.grouped_by}: {routing.probe_chance:.1%})"
        )
    if found.lesions is not None:
        if not found.lesions.most_important:
            lines.append("No layer closed alone costs more than noise")
        lines.append(
            f"Idle when closed alone (at most {_idle(found.lesions)} or one standard error lost), counted from 1: "
            f"{ranges(idle_alone(found.lesions))}"
        )
    if found.usage is not None:
        lines += usage_lines(found.usage)
        lines.append(f"Layers kept, counted from 1: {ranges(found.usage.kept)}")
    return lines


def _important_layers(lesions: LesionStudy) -> Table:
    whole, measure = lesions.baseline, lesions.measure
    name = MEASURES.get(measure, measure)
    perplexity = lesions.perplexity
    extra = () if perplexity is None else ("perplexity without",)
    table = right_aligned_table("layer", "name", "loss without", *extra, f"{name} without", f"{name} lost", names=2)
    perplexed = "" if whole.perplexity is None else f", perplexity {whole.perplexity:.4g}"
    everything = f"with all layers: loss {whole.loss:.4g}{perplexed}, {named_score(measure, whole.accuracy)}"
    important = lesions.most_important[:_MOST_IMPORTANT]
    table.title = f"The most important layers, counted from 1 ({everything})"
    table.title_justify = "left"
    for layer in important:
        cost = score(measure, lesions.error[layer] - lesions.baseline.error)
        if lesions.standard_error is not None:
            cost += f" ± {score(measure, lesions.standard_error[layer])}"
        table.add_row(
            str(layer + 1),
            lesions.layers[layer],
            f"{lesions.loss[layer]:.4g}",
            *(() if perplexity is None else (f"{perplexity[layer]:.4g}",)),
            score(measure, 1 - lesions.error[layer]),
            cost,
        )
    return table


def _observations(seen: Observations) -> Table:
    table = right_aligned_table("the paper's observation", "this network", names=2)
    idle = "about 60 % of the layers are idle (MNIST)"
    rows = [
        ("most biases decreased further during training", _percent(seen.biases_fell, "of the biases decreased")),
        ("biases increase with depth (CIFAR-100)", _number(seen.bias_with_depth, "correlation")),
        ("... and correlate inversely with mean gate activity", _number(seen.activity_with_bias, "correlation")),
        (
            "most gates are active on average (CIFAR-100)",
            _percent(seen.active_on_average, "have a mean of 0.05 or more"),
        ),
        (
            "few gates are active for a single sample",
            _percent(seen.active_per_sample, "of the gates, mean over samples"),
        ),
        (
            "block outputs change early, then form stripes",
            None if seen.stripes_begin is None else f"90 % of the change in the first {seen.stripes_begin} layers",
        ),
        (idle, _percent(seen.idle_alone, "idle when closed alone")),
        ("" if seen.idle_alone is not None else idle, _percent(seen.idle_together, "idle when closed together")),
    ]
    for paper, here in rows:
        if here is not None:
            table.add_row(paper, here)
    return table


def _idle(lesions: LesionStudy) -> str:
    from verydeep.analysis import IDLE, tolerance_text

    return "0.1 % of accuracy" if lesions.measure == "accuracy" else tolerance_text(lesions.measure, IDLE)


def ranges(layers: list[int] | tuple[int, ...]) -> str:
    """Abbreviate a list of layers, counted from 1: 1, 3-7, 12."""
    parts: list[list[int]] = []
    for layer in sorted(layer + 1 for layer in layers):
        if parts and layer == parts[-1][-1] + 1:
            parts[-1].append(layer)
        else:
            parts.append([layer])
    return ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts) or "none"


def _percent(value: float | None, what: str) -> str | None:
    return None if value is None else f"{value:.1%} {what}"


def _number(value: float | None, what: str) -> str | None:
    return None if value is None else f"{what} {value:+.2f}"


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
