"""Tables of the page: epochs, layers, pruning, and nested settings as rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from verydeep.analysis import Findings, PruneReport, Score, split_name
from verydeep.report.figures._axes import metric_name
from verydeep.training import EpochMetrics, Evaluation, estimate_text
from verydeep.words import MEASURES, METRIC_NAMES, error_name, metric_value, score

_MOST_ROWS = 200

Table = tuple[list[str], list[list[str]]]  # headings, rows


def epoch_table(metrics: Sequence[EpochMetrics]) -> Table:
    """List the metrics of every epoch, or of 200 evenly spread ones if there are more."""
    lines = [line.to_dict() for line in metrics]
    columns = [name for name in dict.fromkeys(key for line in lines for key in line) if name != "seconds"]
    places = np.linspace(0, len(lines) - 1, min(_MOST_ROWS, len(lines))).round().astype(int)
    rows = [[_metric(name, lines[place].get(name)) for name in columns] for place in places]
    return [metric_name(name) for name in columns], rows


def _metric(name: str, value: float | None) -> str:
    if value is None:
        return "diverged" if "loss" in name else ""
    if not isinstance(value, int | float):  # what others added to a line may be of any type
        return str(value)
    return str(value) if name == "epoch" else f"{value:.2%}" if "accuracy" in name else f"{value:.4g}"


def layer_table(findings: Findings) -> Table | None:
    """List the gates of every layer, the cost of closing it, and whether it is needed; None without an analysis."""
    gates, lesions, usage = findings.gates, findings.lesions, findings.usage
    layers = lesions.layers if lesions else usage.greedy.layers if usage else gates.layers if gates else ()
    columns: dict[str, list[str]] = _layers(layers) if layers else {}
    if gates:
        columns["mean bias"] = [f"{np.mean(row):.3f}" for row in gates.bias]
        columns["mean gate"] = [f"{np.mean(row):.4f}" for row in gates.mean]
        columns["open"] = [f"{np.mean(row):.1%}" for row in gates.open_share]
        columns["nearly closed"] = [f"{np.mean(row):.1%}" for row in gates.shut_share]
        if len(gates.layers) < len(layers):  # the others have no gates
            rows = {layer: row for row, layer in enumerate(gates.layers)}
            for name in list(columns)[2:]:
                columns[name] = [columns[name][rows[each]] if each in rows else "" for each in layers]
    if lesions:
        columns["loss if closed"] = [f"{value:.4f}" for value in lesions.loss]
        columns["change of loss"] = [f"{value:+.4f}" for value in lesions.loss - lesions.baseline.loss]
        columns[f"{error_name(lesions.measure)} if closed"] = [score(lesions.measure, value) for value in lesions.error]
        if lesions.perplexity is not None:
            columns["perplexity if closed"] = [f"{value:.4g}" for value in lesions.perplexity]
        if lesions.standard_error is not None:
            columns["± standard error"] = [score(lesions.measure, value) for value in lesions.standard_error]
    if usage:
        columns["needed"] = ["kept" if n in usage.kept else "idle" for n in range(len(usage.greedy.layers))]
    return (list(columns), [list(row) for row in zip(*columns.values(), strict=True)]) if columns else None


def metrics_table(evaluation: Evaluation) -> Table:
    """List the metrics of predictions with their intervals."""
    rows = []
    for name, each in evaluation.metrics.items():
        ends = "" if each.low != each.low else f"{metric_value(name, each.low)} to {metric_value(name, each.high)}"
        rows.append([METRIC_NAMES[name], metric_value(name, each.value), ends])
    return ["metric", "value", "95% bootstrap interval"], rows


def each_table(evaluation: Evaluation) -> Table | None:
    """List the metrics of every label or target; None if there are no such."""
    if not evaluation.each:
        return None
    names = list(next(iter(evaluation.each.values())))
    rows = [
        [
            name,
            *(f"{each.value:.2%}" if key == "frequency" else estimate_text(key, each) for key, each in found.items()),
        ]
        for name, found in evaluation.each.items()
    ]
    first = "target" if evaluation.task.kind == "regression" else "label"
    return [first, *(METRIC_NAMES.get(name, name) for name in names)], rows


def _layers(names: Sequence[str]) -> dict[str, list[str]]:
    return {"layer": [str(number) for number in range(1, len(names) + 1)], "name": list(names)}


def prune_table(prune: PruneReport) -> Table:
    """Compare the network before and after pruning."""
    (before, after), (wide, narrow), (work, less) = prune.chosen, prune.parameters, prune.multiply_adds
    (slow, fast), name = prune.latency, MEASURES.get(prune.measure, prune.measure)
    rows = [
["layers that can be closed", f"{len(prune.layers)}", f"{len(prune.kept)}", f"−{len(prune.removed)}"],
        [f"{name}, {split_name(prune.split)} (layers were counted on it)", *_accuracies(before, after)],
        *([[f"{name}, test set", *_accuracies(*prune.test)]] if prune.test else []),
        *([[f"{name}, test set, after fine-tuning", "", prune.tuned.text, ""]] if prune.tuned else []),
        ["parameters", f"{wide:,}", f"{narrow:,}", _times(wide, narrow, "smaller")],
        ["multiply-adds per sample", f"{work:,}", f"{less:,}", _times(work, less, "fewer")],
        [f"milliseconds for {prune.latency_batch} samples", f"{1e3 * slow:.2f}", f"{1e3 * fast:.2f}",
         _times(slow, fast, "faster")],
    ]  # fmt: skip
    return ["", "before", "after", "difference"], rows


def _accuracies(before: Score, after: Score) -> list[str]:
    change = after.accuracy - before.accuracy
    sign = "+" if change >= 0 else "−"
    return [before.text, after.text, sign + score(before.measure, abs(change))]


def _times(before: float, after: float, what: str) -> str:
    return f"{before / after:.2f} × {what}" if after else ""


def flatten(values: dict[str, Any], prefix: str = "") -> list[list[str]]:
    """Turn nested values into rows of a table, with dotted names."""
    rows = []
    for key, value in values.items():
        if isinstance(value, dict):
            rows += flatten(value, f"{prefix}{key}.")
        else:
            rows.append([f"{prefix}{key}", "none" if value is None else str(value)])
    return rows
