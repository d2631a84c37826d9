"""Results of analysis and training as the page's heat maps and charts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from verydeep.analysis import (
    ClassRouting,
    DepthUsage,
    GateStatistics,
    LesionStudy,
    PairLesion,
    SignalFlow,
    is_significant,
    split_name,
    the_split,
)
from verydeep.report.figures._axes import LAYER, Array, layer_grid
from verydeep.report.figures._gates import common_initial_bias, has_feature_maps, largest_deviation
from verydeep.report.figures._lesions import INTERVAL, LOWEST_R2, Metric, interaction, least_extent, lesion_noise
from verydeep.report.figures._routing import choose_classes, layout_dendrogram
from verydeep.report.figures._signal_flow import curve_styles
from verydeep.report.html._charts import Chart, Series
from verydeep.report.html._heat_maps import HeatMap, pages_that_fit
from verydeep.training import EpochMetrics
from verydeep.words import MEASURES, error_name, loss_name, plural

_LONGEST = 36  # letters of the name of some data
_LINES = (1, 0, 2)  # styles of moments: the first, before training, is dashed


def gate_maps(gates: GateStatistics) -> dict[str, HeatMap]:
    """Draw the paper's Figure 2: biases, mean gate outputs, and the gates and outputs of one sample."""
    block = "feature map" if has_feature_maps(gates) else "block"
    bias, outputs, start = layer_grid(gates.bias), layer_grid(gates.sample_outputs), common_initial_bias(gates)
    found = {}
    if np.isfinite(bias).any():
        low, high = float(np.nanmin(bias)), float(np.nanmax(bias))
        if start is not None:
            low, high = start - largest_deviation(bias, start), start + largest_deviation(bias, start)
        kind: Any = "sequential" if start is None else "diverging"
        found["bias"] = HeatMap("gate bias", bias[None], kind, low, high, start=start, columns=block)
    for key, name, values in (
        ("mean", "mean gate output", gates.mean),
        ("sample", "gate output of one sample", gates.sample_gates),
    ):
        found[key] = HeatMap(name, layer_grid(values)[None], "sequential", 0, 1, power=0.5, columns=block)
    far = largest_deviation(outputs)
    found["output"] = HeatMap("block output of that sample", outputs[None], "diverging", -far, far, columns=block)
    return found


def routing_map(routing: ClassRouting) -> tuple[HeatMap, tuple[int, ...]]:
    """Draw the paper's Figure 3 with a page per class, as far as they fit, and choose the pages to show first."""
    cells = len(routing.layers) * max(layer.shape[1] for layer in routing.difference)
    most = pages_that_fit(cells)
    shown = choose_classes(routing)
    chosen = sorted({*shown, *[c for c in range(len(routing.classes)) if c not in shown][: most - len(shown)]})
    values = np.stack([layer_grid([layer[c] for layer in routing.difference]) for c in chosen])
    errors = np.stack([layer_grid([layer[c] for layer in routing.standard_error]) for c in chosen])
    noise = ~is_significant(values, errors) & np.isfinite(values)
    far = largest_deviation(values)
    names = tuple(routing.classes[c] for c in chosen)
    found = HeatMap("difference", values, "diverging", -far, far, pages=names, noise=noise)
    return found, tuple(chosen.index(c) for c in shown)


def distance_map(routing: ClassRouting) -> HeatMap:
    """Draw the distances between classes, with similar classes side by side."""
    order = layout_dendrogram(routing.linkage).order
    values = routing.distance[np.ix_(order, order)]
    names = tuple(routing.classes[c] for c in order)
    high = float(np.nanmax(values)) or 1.0
    by = routing.grouped_by
    return HeatMap("distance", values[None], "sequential", 0, high, rows=by, columns=by, names=names)


def class_tree(routing: ClassRouting) -> dict[str, Any]:
    """Lay out the dendrogram of classes with its root on the left and 18 units per leaf."""
    tree = layout_dendrogram(routing.linkage)
    far = max(float(routing.linkage[:, 2].max()), 1e-12)
    paths = [
        "M" + "L".join(f"{round(270 - 262 * height / far, 1)} {18 * place + 14:g}" for height, place in corners)
        for corners in tree.branches
    ]
    leaves = [(18 * place + 14, routing.classes[c]) for place, c in enumerate(tree.order)]
    return {"paths": paths, "leaves": leaves, "height": 18 * len(leaves) + 10, "far": far}


def pair_maps(pairs: PairLesion) -> dict[str, HeatMap]:
    """Draw the error with two layers closed, and its excess over the sum of both single lesions."""
    more, percent = interaction(pairs.error, pairs.baseline.error), "accuracy" in pairs.measure
    far, low, high = largest_deviation(more), float(pairs.error.min()), float(pairs.error.max())
    return {
        "error": HeatMap(
            f"{error_name(pairs.measure)}, both closed",
            pairs.error[None],
            "sequential",
            low,
            high,
            columns="layer",
            percent=percent,
        ),
        "more": HeatMap(
            "excess over the sum of both single lesions",
            more[None],
            "diverging",
            -far,
            far,
            columns="layer",
            percent=percent,
        ),
    }


def training_charts(metrics: Sequence[EpochMetrics], measure: str = "accuracy") -> dict[str, Chart]:
    """Draw loss and accuracy, or R2, over epochs for every split that was evaluated."""
    names = {"": "training, during the epoch"}
    names |= {"train_": "training set", "valid_": "validation set", "test_": "test set"}
    lines = [line.to_dict() for line in metrics]
    epochs, charts = [line["epoch"] for line in lines], {}
    name, percent = MEASURES.get(measure, measure), measure == "accuracy"
    for key, y_name, log in (("loss", loss_name(measure), True), (measure, name, False)):
        sets = [s for s in names if any(line.get(f"{s}{key}") is not None for line in lines)]
        curves = [
            Series(names[s], [line.get(f"{s}{key}") for line in lines], number, number % 3)
            for number, s in enumerate(sets)
        ]
        if curves:
            label = f"{y_name} over {len(epochs)} epochs"
            chart = Chart(label, epochs, curves, "epoch", y_name, log=log, percent=percent and not log)
            charts["loss" if log else "score"] = chart if log or percent else _without_collapse(chart)
    return charts


def lesion_charts(lesions: LesionStudy) -> dict[str, Chart]:
    """Draw the paper's Figure 4: error and loss with each layer closed in turn."""
    where, layers = _short(split_name(lesions.split)), range(1, len(lesions.layers) + 1)
    charts: dict[str, Chart] = {}
    metrics: tuple[Metric, ...] = ("error", "loss")
    for key in metrics:
        y_name = error_name(lesions.measure) if key == "error" else loss_name(lesions.measure)
        values, baseline, noise = getattr(lesions, key), getattr(lesions.baseline, key), lesion_noise(lesions, key)
        ends: list[Any] = [(), ()] if noise is None else [values - INTERVAL * noise, values + INTERVAL * noise]
        low, high = (list(map(float, end)) for end in ends)
        y_label = _with_data(y_name, where)
        charts[key] = Chart(
            f"{y_name} on {the_split(lesions.split)} with each of {len(values)} layers closed in turn",
            layers, [Series("this layer closed", values.tolist(), low=low, high=high)], LAYER, y_label,
            percent=key == "error" and "accuracy" in lesions.measure, rule=(baseline, "no layer closed"),
            least=least_extent(key, baseline, noise),
        )  # fmt: skip
    if lesions.perplexity is not None:
        noise = lesion_noise(lesions, "loss")
        low, high = [
            list(np.exp(lesions.loss + side * INTERVAL * noise)) if noise is not None else [] for side in (-1, 1)
        ]
        charts["perplexity"] = Chart(
            f"perplexity on {the_split(lesions.split)} with each of {len(layers)} layers closed in turn",
            layers, [Series("this layer closed", lesions.perplexity.tolist(), low=low, high=high)], LAYER, "perplexity",
            log=True, rule=(float(np.exp(lesions.baseline.loss)), "no layer closed"),
        )  # fmt: skip
    return charts


def perplexity_chart(usage: DepthUsage) -> Chart | None:
    """Draw the perplexity of a language model against the number of layers kept; None for other networks."""
    greedy = usage.greedy
    if greedy.measure != "token_accuracy":
        return None
    values, total = np.exp(greedy.loss[::-1]), len(greedy.layers)
    kept = list(range(total - len(values) + 1, total + 1))
    label = f"perplexity on {the_split(greedy.split)} against the number of layers kept"
    whole = (float(values[-1]), "no layer closed")
    curve = Series(_short(split_name(greedy.split)) or "perplexity", values.tolist())
    return Chart(label, kept, [curve], "layers kept", "perplexity", log=True, rule=whole)


def _short(name: str) -> str:
    """A name that fits beside an axis or into a key."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _with_data(name: str, where: str) -> str:
    """The title of an axis: with the name of the data, if that fits."""
    return f"{name}, {where}" if where and len(name) + len(where) < _LONGEST else name


def usage_chart(usage: DepthUsage) -> Chart:
    """Draw accuracy, or R2, against the number of layers kept: on held-out data, and on the training samples."""
    greedy, measure = usage.greedy, usage.greedy.measure
    name = MEASURES.get(measure, measure)
    accuracy, total = (1 - greedy.error)[::-1], len(greedy.layers)
    kept = list(range(total - len(accuracy) + 1, total + 1))
    where = _short(split_name(greedy.split))
    band = [list[float](), list[float]()] if greedy.band is None else [(1 - end[::-1]).tolist() for end in greedy.band]
    curves = [Series(where or name, accuracy.tolist(), low=band[1], high=band[0])]
    if greedy.training is not None:
        paper = (1 - greedy.training.error)[::-1].tolist()
        curves.append(Series("training set, as in the paper", paper, 3, 1, thin=True))
    point = (float(len(usage.kept)), float(accuracy[kept.index(len(usage.kept))]), plural(len(usage.kept), "layer"))
    chart = Chart(
        f"{name} on {the_split(greedy.split)} against the number of layers kept",
        kept, curves, "layers kept", name if greedy.training else _with_data(name, where),
        percent="accuracy" in measure, rule=(float(accuracy[-1]) - usage.within, f"lowest {name} allowed"), mark=point,
        least=least_extent("error", float(accuracy[-1]), greedy.standard_error),
    )  # fmt: skip
    return chart if "accuracy" in measure else _without_collapse(chart)


def _without_collapse(chart: Chart) -> Chart:
    """A chart of R2 without values below -1, which would make all others look equal; its axis says so."""
    values = [value for series in chart.series for value in series.values if value is not None]
    if not values or min(values) >= LOWEST_R2 or max(values) <= LOWEST_R2:
        return chart
    return replace(chart, floor=LOWEST_R2, y_name=f"{chart.y_name} (not below −1)")


def flow_charts(flows: Sequence[SignalFlow]) -> dict[str, Chart]:
    """Draw the size of activations and gradients per layer."""
    styles = curve_styles([flow.name for flow in flows])
    longest = max(len(flow.layers) for flow in flows)
    charts = {}
    for key, y_name in (("activation", "size of activations"), ("gradient", "size of gradients")):
        curves = [
            Series(flow.name, _padded(getattr(flow, key), longest), colour, _LINES[line % 3])
            for flow, (colour, line) in zip(flows, styles, strict=True)
        ]
        charts[key] = Chart(f"{y_name} in every layer", range(1, longest + 1), curves, LAYER, y_name, log=True)
    return charts


def _padded(values: Array, length: int) -> list[float | None]:
    return [*values.tolist(), *[None] * (length - len(values))]
