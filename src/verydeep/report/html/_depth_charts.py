"""The charts of the page about depth."""

import math
from collections.abc import Sequence

from verydeep.depth import DepthAnswer
from verydeep.report.figures._depth_layout import (
    axis_names,
    depth_ticks,
    is_spaced_by_error,
    marked_point,
    score_curves,
    score_limits,
    score_lines,
)
from verydeep.report.html._charts import Chart, Series
from verydeep.report.html._depth_sentences import layers
from verydeep.words import MEASURES, loss_name, plural

_LETTER = 7.0  # the width of a letter of a label, as the page draws it


def depth_charts(answer: DepthAnswer) -> dict[str, Chart]:
    """Every chart that there are values for, by its name on the page."""
    charts: dict[str, Chart] = {}
    if answer.points:
        charts |= {"score": score_chart(answer), "score-narrow": score_chart(answer, narrow=True)}
    if answer.used is not None and answer.used.cost:
        charts["cost"] = _cost_chart(answer)
    if answer.used is not None and answer.used.kept and answer.unit != "layers":
        charts["kept"] = _kept_chart(answer)
    if any(curve.loss for curve in answer.curves):
        charts["training"] = _training_chart(answer)
    return charts


def score_chart(answer: DepthAnswer, *, narrow: bool = False) -> Chart:
    """Draw the score on held-out data against depth, for a wide screen or a narrow one.

    Args:
        answer: What `how_deep` found.
        narrow: Whether it is for a narrow screen, which has no room for labels in the margin.
    """
    curves, lines, marked = score_curves(answer), score_lines(answer), marked_point(answer)
    depths = sorted({depth for curve in curves for depth in curve.depth})
    series = [
        Series(
            curve.name,
            _at(depths, curve.depth, curve.score),
            curve.colour,
            low=_at(depths, curve.depth, curve.low) if curve.low else (),
            high=_at(depths, curve.depth, curve.high) if curve.high else (),
            thin=curve.thin,
        )
        for curve in curves
    ]
    x_name, y_name = axis_names(answer)
    label = f"{y_name} against depth, from {depths[0]} to {depths[-1]} {answer.unit}"
    longest = max(len(text) for _, text in lines)
    return Chart(
        label, depths, series, x_name, y_name,
        percent="accuracy" in answer.measure,
        mark=None if marked is None else (marked[0], marked[1], f"the answer, {layers(answer, marked[0])}"),
        log_x=True,
        ticks=depth_ticks(answer),
        joined=True,
        by_error=is_spaced_by_error(answer),
        limits=score_limits(answer),
        rules=lines,
        span=None if marked is None or answer.interval is None else (answer.interval[0], answer.interval[1]),
        width=390 if narrow else 720,
        height=330 if narrow else 430,
        right=14 if narrow else int(24 + _LETTER * longest),
    )  # fmt: skip


def _at(depths: Sequence[int], known: Sequence[int], values: Sequence[float]) -> list[float | None]:
    found = dict(zip(known, values, strict=True))
    return [found.get(depth) for depth in depths]


def _cost_chart(answer: DepthAnswer) -> Chart:
    used = answer.used
    assert used is not None
    errors = used.cost_error if len(used.cost_error) == len(used.cost) else ()
    series = Series(
        "this layer closed, ± one standard error" if errors else "this layer closed",
        used.cost,
        low=[cost - error for cost, error in zip(used.cost, errors, strict=True)] if errors else (),
        high=[cost + error for cost, error in zip(used.cost, errors, strict=True)] if errors else (),
    )
    label = f"By how much closing each of {plural(len(used.cost), 'highway layer')} raises the loss on held-out data"
    numbers = range(1, len(used.cost) + 1)
    return Chart(label, numbers, [series], "highway layer (from 1)", "rise of the loss", bars=True)


def _kept_chart(answer: DepthAnswer) -> Chart:
    used, name = answer.used, MEASURES.get(answer.measure, answer.measure)
    assert used is not None
    whole = len(used.score_low) == len(used.score_high) == len(used.kept)
    low, high = (used.score_low, used.score_high) if whole else ((), ())
    series = Series(name, used.score, 2, low=low, high=high, thin=True)
    floor = None if "accuracy" in answer.measure else max(answer.guess_score, -1.0) - 1
    percent = "accuracy" in answer.measure
    return Chart(
        f"{name} on held-out data against the number of layers kept",
        used.kept, [series], "layers kept", f"{name} on held-out data", percent=percent, floor=floor,
    )  # fmt: skip


def _training_chart(answer: DepthAnswer) -> Chart:
    longest = max(len(curve.loss) for curve in answer.curves)
    series = [
        Series(
            f"{curve.kind}, {plural(curve.depth, 'layer')}{'' if answer.unit == 'layers' else ' per stage'}",
            [*(loss if math.isfinite(loss) else None for loss in curve.loss), *[None] * (longest - len(curve.loss))],
            0 if curve.kind == "highway" else 1,
            0 if curve.kind == "highway" else 1,
        )
        for curve in answer.curves
    ]
    name = loss_name(answer.measure)
    label = f"{name} on training data over {plural(longest, 'epoch')}"
    return Chart(label, range(1, longest + 1), series, "epoch", f"{name}, training data", log=True)
