"""The tables of the page about depth."""

from dataclasses import dataclass

from verydeep.depth import DepthAnswer, DepthPoint
from verydeep.report.html._depth_sentences import interval, layers
from verydeep.report.html._tables import Table
from verydeep.training import clock
from verydeep.words import MEASURES, score

_NAMES = {
    "optim.lr": "learning rate",
    "optim.weight_decay": "weight decay",
    "model.width": "width",
    "model.gate_bias": "gate bias",
    "model.activation": "activation",
}


@dataclass(frozen=True)
class ModelRow:
    """A model beside others: its score, and where its interval is drawn, in percent of the width.

    Attributes:
        name: What it is called.
        score: Its score in words.
        interval: Its interval in words.
        rows: On how many rows it was fitted.
        seconds: How long that took.
        note: What is special about it.
        place: Where its score is drawn; None if it has none.
        low: Where its interval begins.
        high: Where it ends.
        ours: Whether it is the recommended network.
    """

    name: str
    score: str
    interval: str
    rows: str
    seconds: str
    note: str
    place: float | None = None
    low: float | None = None
    high: float | None = None
    ours: bool = False


def model_rows(answer: DepthAnswer) -> list[ModelRow]:
    """The recommended network, the other models and a blind guess; empty if there is nothing to compare."""
    network, measure = answer.network, answer.measure
    found: list[tuple[str, float | None, float | None, float | None, str, str, str, bool]] = []
    if network is not None and network.test_score is not None:
        point = answer.point(network.depth, network.kind)
        seconds = "" if point is None or not point.seconds else _seconds(point.seconds)
        name = (
            "linear model, as a network"
            if network.depth == 0
            else f"{network.kind} network, {layers(answer, network.depth)}"
        )
        rows = f"{network.rows:,}" if network.rows else ""
        found.append(
            (name, network.test_score, network.test_low, network.test_high, rows, seconds, "recommended", True)
        )
    for other in answer.others:
        rows = (
            f"{other.rows:,}" + (f" of {other.all_rows:,}" if other.all_rows > other.rows else "") if other.rows else ""
        )
        seconds = _seconds(other.seconds) if other.seconds else ""
        found.append((other.name, other.score, other.score_low, other.score_high, rows, seconds, other.note, False))
    if not found:
        return []
    found.append(("blind guess", answer.guess_score, None, None, "", "", "on held-out data", False))
    ends = [end for row in found[:-1] for end in row[1:4] if end is not None] or [answer.guess_score]
    bottom, top = min(ends), max(ends)
    if answer.guess_score >= bottom - (top - bottom):  # farther away, it would leave no room for the differences
        bottom, top = min(bottom, answer.guess_score), max(top, answer.guess_score)

    def place(value: float | None) -> float | None:
        if value is None or value < bottom:
            return None
        return round(3 + 94 * (value - bottom) / ((top - bottom) or 1.0), 2)

    return [
        ModelRow(
            name, "" if value is None else score(measure, value), interval(measure, low, high), rows, seconds, note,
            place(value), place(low), place(high), ours,
        )
        for name, value, low, high, rows, seconds, note, ours in found
    ]  # fmt: skip


def _short(value: str) -> str:
    """A setting with at most four digits."""
    try:
        return value if len(value) < 7 else f"{float(value):.4g}"
    except ValueError:
        return value


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else clock(seconds)


def point_table(answer: DepthAnswer) -> Table:
    """Every network that was trained."""
    names = list(dict.fromkeys(setting.partition("=")[0] for point in answer.points for setting in point.settings))
    name = MEASURES.get(answer.measure, answer.measure)
    headings = [
        "depth", "kind", "held-out loss", "above the best", "enough?", f"held-out {name}", "95 % interval",
        "lowest to highest seed", "diverged", *(_NAMES.get(each, each) for each in names), "parameters",
        "multiply-adds", "epochs", "seconds per training",
    ]  # fmt: skip
    return headings, [_row(answer, point, names) for point in answer.points]


def _row(answer: DepthAnswer, point: DepthPoint, names: list[str]) -> list[str]:
    settings = dict(setting.partition("=")[::2] for setting in point.settings)
    enough = "" if answer.depth is None else "yes" if point.is_enough else "no"
    chosen = point.depth == answer.depth and point.kind == (answer.kind if point.depth > 1 else "highway")
    return [
        str(point.depth),
        "linear" if point.depth == 0 else "either" if point.depth == 1 and answer.unit == "layers" else point.kind,
        f"{point.loss:.4g}",
        f"{point.excess:.4f} ± {point.excess_error:.4f}" if abs(point.excess) < 1000 else f"{point.excess:.3g}",
        f"{enough}, the answer" if chosen else enough,
        score(answer.measure, point.score),
        interval(answer.measure, point.score_low, point.score_high),
        interval(answer.measure, min(point.seed_scores), max(point.seed_scores)) if len(point.seed_scores) > 1 else "",
        f"{point.diverged} of {len(point.seeds)}" if point.diverged else "",
        *(_short(settings.get(each, "")) for each in names),
        f"{point.parameters:,}" if point.parameters else "",
        f"{point.multiply_adds:,}" if point.multiply_adds else "",
        f"{point.epochs:.1f}" if point.epochs else "",
        f"{point.seconds:.1f}" if point.seconds else "",
    ]
