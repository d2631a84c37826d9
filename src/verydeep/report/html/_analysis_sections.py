"""The sections about the inside of a network: gates, routing, lesions, layers needed, signal flow."""

from base64 import b64encode
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from verydeep.analysis import (
    ClassRouting,
    DepthUsage,
    Findings,
    GateStatistics,
    LesionStudy,
    observations,
    samples_of,
)
from verydeep.report.figures._gates import has_feature_maps, plot_feature_gates
from verydeep.report.figures._theme import Theme, ThemedFigure
from verydeep.report.html import _interactive_figures as figures, _sentences as sentences
from verydeep.report.html._charts import Chart
from verydeep.report.html._heat_maps import HeatMap
from verydeep.report.html._tables import Table, layer_table, prune_table
from verydeep.training import Evaluation
from verydeep.words import error_name

_MOST_LEAVES = 120  # classes in a readable tree
_TITLES = {
    "bias": "Gate biases",
    "mean": "Mean gate outputs",
    "sample": "Gates of one sample",
    "output": "Outputs of that sample",
}


def analysis_sections(
    findings: Findings,
    data: str,
    evaluation: Evaluation | None = None,
    split: str = "test",
    noun: str = "highway layer",
) -> dict[str, Any]:
    """Collect what an analysis adds to the page; charts and heat maps are returned under their own keys.

    Args:
        findings: The results.
        data: The name of the data.
        evaluation: How good the predictions for held-out data are, if that is known.
        split: The split of the evaluation.
        noun: What a layer is called.
    """
    charts: dict[str, Chart] = {}
    heat: dict[str, HeatMap] = {}
    context: dict[str, Any] = vars(findings) | {"answer": "", "doubt": "", "bars": [], "layers": layer_table(findings)}
    context |= {"noun": noun, "samples_of": samples_of}
    if findings.gates:
        context |= _gates(findings.gates, heat)
    if findings.routing:
        context |= _routing(findings.routing, heat)
    if findings.lesions:
        charts |= {f"lesion-{key}": found for key, found in figures.lesion_charts(findings.lesions).items()}
        context["error_name"] = error_name(findings.lesions.measure)
        context["lesion_statements"] = sentences.about_lesions(findings.lesions, noun == "highway layer")
    if findings.pairs:
        maps = {f"pair-{key}": found for key, found in figures.pair_maps(findings.pairs).items()}
        heat |= maps
        context["pair_panels"] = [_panel(key, found) for key, found in maps.items()]
    if findings.usage:
        charts["usage"] = figures.usage_chart(findings.usage)
        perplexity = figures.perplexity_chart(findings.usage)
        charts |= {} if perplexity is None else {"usage-perplexity": perplexity}
        context |= _usage(findings, findings.usage, data, noun)
        context["doubt"] = sentences.doubt(findings.usage, data, findings.routing, evaluation, split)
    if findings.flow:
        charts |= {f"flow-{key}": found for key, found in figures.flow_charts(findings.flow).items()}
    context["prune"] = prune_table(findings.prune) if findings.prune else None
    return context | {"inside": charts, "heat": heat, "depth": findings.usage or findings.prune}


def _panel(key: str, found: HeatMap, title: str = "", page: int = 0) -> tuple[str, int, str, str]:
    """Describe a heat map for the template: its key, the page shown, its title, and its label for screen readers."""
    _, rows, columns = found.values.shape
    values = found.values[page][np.isfinite(found.values[page])]
    ends = f" Values from {values.min():.4g} to {values.max():.4g}." if values.size else ""
    label = f"{found.name}: {rows} {found.rows}s by {columns} {found.columns}s.{ends}"
    return key, page, title or found.name[:1].upper() + found.name[1:], label


def _gates(gates: GateStatistics, heat: dict[str, HeatMap]) -> dict[str, Any]:
    maps = figures.gate_maps(gates)
    heat |= maps
    return {
        "gate_panels": [_panel(key, found, _TITLES[key]) for key, found in maps.items()],
        "gate_statements": sentences.about_gates(observations(gates)),
        "feature_pictures": _feature_pictures(gates),
    }


def _feature_pictures(gates: GateStatistics) -> list[str]:
    """Draw gates at every position as PNG, in light and dark; an empty list for a network without feature maps."""
    if not has_feature_maps(gates):
        return []
    return in_both_themes(lambda theme: plot_feature_gates(gates, theme=theme))


def in_both_themes(draw: Callable[[Theme], ThemedFigure], dpi: int = 150) -> list[str]:
    """Draw a figure as PNG, in light and dark, for the page."""
    themes: tuple[Theme, ...] = ("light", "dark")
    return [f"data:image/png;base64,{b64encode(draw(theme).png(dpi)).decode()}" for theme in themes]


def _routing(routing: ClassRouting, heat: dict[str, HeatMap]) -> dict[str, Any]:
    heat["routing"], shown = figures.routing_map(routing)
    heat["distance"] = figures.distance_map(routing)
    return {
        "routing_panels": [_panel("routing", heat["routing"], "Gates of", page) for page in shown],
        "routing_left_out": len(heat["routing"].pages) < len(routing.classes),
        "routing_statements": sentences.about_routing(routing),
        "nearest": _nearest(routing),
        "tree": figures.class_tree(routing) if 1 < len(routing.classes) <= _MOST_LEAVES else None,
    }


def _nearest(routing: ClassRouting) -> Table:
    rows = []
    for number, name in enumerate(routing.classes):
        others = [(float(d), c) for c, d in enumerate(routing.distance[number]) if c != number and np.isfinite(d)]
        ends = [f"{routing.classes[c]} ({d:.4f})" for d, c in (min(others), max(others))] if others else ["", ""]
        rows.append([name, f"{routing.counts[number]:,}", *ends])
    return [routing.grouped_by, "samples", "nearest (distance)", "farthest (distance)"], rows


def _usage(findings: Findings, usage: DepthUsage, data: str, noun: str) -> dict[str, Any]:
    return {
        "answer": sentences.answer(usage, data, noun),
        "counted": sentences.how_counted(usage) + sentences.other_baseline(usage, findings.lesions),
        "beside": sentences.on_training_samples(usage),
        "bars": _bars(usage, findings.lesions),
        "kept_words": layer_ranges(usage.kept),
        "idle_words": layer_ranges(usage.idle),
    }


def _bars(usage: DepthUsage, lesions: LesionStudy | None) -> list[tuple[float, bool]]:
    """Per layer, the height of its bar, from 0 to 100, and whether the layer is kept."""
    kept = set(usage.kept)
    if lesions is None:
        return [(60.0, layer in kept) for layer in range(len(usage.greedy.layers))]
    cost = np.zeros(len(lesions.layers))
    matter = list(lesions.most_important)  # what may be noise has no height
    cost[matter] = np.sqrt(np.maximum(lesions.loss[matter] - lesions.baseline.loss, 0))  # makes small costs visible
    heights = 10 + 90 * cost / (cost.max() or 1)
    return [(round(float(height), 1), layer in kept) for layer, height in enumerate(heights)]


def layer_ranges(layers: Sequence[int]) -> str:
    """Abbreviate a list of layers, counted from 1: 1–4, 7, 9–12."""
    runs = groupby(enumerate(sorted(layers)), key=lambda pair: pair[1] - pair[0])
    found = [[layer + 1 for _, layer in run] for _, run in runs]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in found) or "none"
