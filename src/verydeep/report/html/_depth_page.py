"""`write_depth_page`: the answer to how deep a network must be, as a page."""

import os
from pathlib import Path
from typing import Any

from verydeep.depth import DepthAnswer
from verydeep.files import write_atomic
from verydeep.report.html._depth_charts import depth_charts
from verydeep.report.html._depth_commands import hand_commands, next_commands
from verydeep.report.html._depth_sentences import (
    chart_note,
    compare_models,
    deepest_sentence,
    headline,
    layers,
    method_sentences,
    network_sentence,
    used_sentences,
    with_interval,
)
from verydeep.report.html._depth_tables import model_rows, point_table
from verydeep.report.html._render import render
from verydeep.training import clock
from verydeep.words import MEASURES

_SECTIONS = (
    ("next", "next", "What to do next"),
    ("use", "models", "Is a deep network any use here?"),
    ("used", "used", "What a trained deep network uses"),
    ("deepest", "curves", "Plain against highway"),
    ("all", "points", "Every network"),
    ("method", "method", "How this was found"),
    ("hand", "hand", "Each step by hand"),
)


def write_depth_page(answer: DepthAnswer, path: str | os.PathLike[str]) -> None:
    """Write the answer of `how_deep` as one self-contained HTML file.

    Args:
        answer: What `how_deep` found.
        path: The file to write.

    Example:
        >>> from verydeep.depth import DepthAnswer, DepthPoint
        >>> from verydeep.report import write_depth_page
        >>> points = tuple(DepthPoint("highway", depth, loss, score) for depth, loss, score in
        ...     ((0, 0.9, 0.7), (1, 0.2, 0.95), (2, 0.19, 0.95)))
        >>> answer = DepthAnswer("moons", 1, "highway", (1, 2), 2, "highway", points)
        >>> write_depth_page(answer, "depth.html")
    """
    write_atomic(Path(path), render("depth.html", _context(answer, Path(path).parent)))


def _context(answer: DepthAnswer, folder: Path) -> dict[str, Any]:
    charts, deepest = depth_charts(answer), max((curve.depth for curve in answer.curves), default=0)
    kinds = {curve.kind for curve in answer.curves if curve.loss}
    context: dict[str, Any] = {
        "answer": answer,
        "charts": charts,
        "headline": headline(answer),
        "chart_note": chart_note(answer),
        "measure": MEASURES.get(answer.measure, answer.measure),
        "facts": _facts(answer),
        "next": next_commands(answer, folder),
        "network": network_sentence(answer),
        "models": model_rows(answer),
        "compared": compare_models(answer),
        "used": used_sentences(answer),
        "curves": "training" in charts,
        "deepest": deepest_sentence(answer),
        "deepest_title": ("Plain against highway at " if len(kinds) > 1 else "Training at ") + layers(answer, deepest),
        "points": point_table(answer) if answer.points else (),
        "method": method_sentences(answer),
        "hand": hand_commands(answer),
    }
    context["contents"] = [(name, title) for name, key, title in _SECTIONS if context[key]]
    return context


def _facts(answer: DepthAnswer) -> list[tuple[str, str]]:
    """The key figures of the recommended network and of the search."""
    found, network, name = [], answer.network, MEASURES.get(answer.measure, answer.measure)
    if network is not None:
        if network.test_score is not None:
            value = with_interval(answer.measure, network.test_score, network.test_low, network.test_high)
            found.append((f"{name} on {network.test_samples:,} test samples", value))
        made = "training at this depth" if network.made == "trained" else "pruning the deep network"
        found.append(("made by", made))
        found.append(("parameters", f"{network.parameters:,}"))
    if answer.used is not None:
        used = answer.used
        ends = "" if used.interval is None else f" ({used.interval[0]} to {used.interval[1]})"
        found.append(("the trained deep network uses", f"{used.used} of {used.depth} layers{ends}"))
    trained = sum(len(point.seeds) for point in answer.points)
    if trained and answer.seconds:
        found.append(("time", f"{clock(answer.seconds)} for {trained} trainings and the search"))
    return found
