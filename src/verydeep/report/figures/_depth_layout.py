"""What the figure and the page's chart of score against depth share: curves, ends of the axes, lines and labels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from verydeep.depth import DepthAnswer
from verydeep.report.figures._axes import accuracy_at, error_position
from verydeep.words import MEASURES, plural, score

_POOR = -0.1  # R2, below which a blind guess does not decide where the axis ends
_LONGEST_NAME = 26  # letters of a model's name beside its line


@dataclass(frozen=True)
class ScoreCurve:
    """A curve of scores against depth.

    Attributes:
        name: Its name in the legend.
        depth: Depths, ascending.
        score: The score at each depth.
        low: The lower ends of the 95 % intervals; empty if not all depths have one.
        high: The upper ends.
        colour: The number of its colour.
        thin: Whether it is not about training at each depth, and drawn thinner.
    """

    name: str
    depth: Sequence[int]
    score: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    colour: int
    thin: bool = False


def score_curves(answer: DepthAnswer) -> list[ScoreCurve]:
    """Highway and plain networks trained at each depth, and the deep network with its layers closed.

    The layers that a convolutional network keeps are not layers per stage, so its third curve needs an axis of its own.
    """
    found = []
    for colour, kind in enumerate(("highway", "plain")):
        points = answer.curve("highway" if kind == "highway" else "plain")
        if kind == "plain" and all(point.kind != kind for point in points):
            continue
        points = tuple(point for point in points if math.isfinite(point.score))
        low = [point.score_low for point in points if point.score_low is not None]
        high = [point.score_high for point in points if point.score_high is not None]
        whole = len(low) == len(high) == len(points)
        depths, scores = [point.depth for point in points], [point.score for point in points]
        name = f"{kind} networks"
        found.append(ScoreCurve(name, depths, scores, low if whole else (), high if whole else (), colour))
    used = answer.used
    if used is not None and used.kept and answer.unit == "layers":
        name = f"the highway of {plural(used.depth, 'layer')}, layers closed one after another"
        found.append(ScoreCurve(name, used.kept, used.score, used.score_low, used.score_high, 2, thin=True))
    return [curve for curve in found if curve.depth]


def score_lines(answer: DepthAnswer) -> list[tuple[float, str]]:
    """Scores and labels of what does not depend on depth: other models on test data, and the blind guess."""
    found = [
        (other.score, f"{shortened(other.name)} {brief_score(answer.measure, other.score)}")
        for other in answer.others
        if other.score is not None and math.isfinite(other.score)
    ]
    return [*found, (answer.guess_score, f"blind guess {brief_score(answer.measure, answer.guess_score)}")]


def brief_score(measure: str, value: float) -> str:
    """A score with few digits, as it is written beside a line: 97.2%, 0.751, −12."""
    if "accuracy" in measure:
        return score(measure, value, 1)
    large = f"{value:.2g}".replace("e+0", "e").replace("e+", "e")
    text = f"{value:.3f}" if abs(value) < 10 else f"{value:,.0f}" if abs(value) < 1e6 else large
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text.replace("-", "−")


def shortened(name: str, most: int = _LONGEST_NAME) -> str:
    """A name that fits into the margin of a figure."""
    return name if len(name) <= most else name[: most - 1].rstrip() + "…"


def score_limits(answer: DepthAnswer) -> tuple[float, float]:
    """The ends of the axis of scores.

    They contain all curves and other models, and the blind guess if it is not so far away that it would flatten them.
    R2 has no lower bound, so its axis ends a little below the blind guess, which is worth about 0, or far less if a
    single extreme value decides what is guessed.
    """
    curves, guess = score_curves(answer), answer.guess_score
    values = [value for curve in curves for part in (curve.score, curve.low, curve.high) for value in part]
    values = [value for value in values if math.isfinite(value)] or [guess]
    values += [value for value, _ in score_lines(answer)[:-1]]
    low, high = min(values), max(values)
    if "accuracy" not in answer.measure:
        anchor = max(guess, _POOR)
        lowest = anchor - max(0.5 * (high - anchor), 0.1)
        best = max(value for curve in curves for value in curve.score) if curves else anchor
        if best < lowest:  # all are worse than a guess should be
            lowest = best - 0.5 * (anchor - best)
        low = max(low, lowest)
    if guess >= low - (high - low):
        low, high = min(low, guess), max(high, guess)
    if "accuracy" in answer.measure:
        low, high = max(low, 0.0), min(high, 1.0)
        if _is_wide(low, high):
            ends = error_position(low), error_position(high)
            room = 0.05 * (ends[1] - ends[0])
            return accuracy_at(ends[0] - room), min(accuracy_at(ends[1] + 2 * room), 1.0)
    room = 0.06 * (high - low) or 0.05
    return low - room, high + room


def is_spaced_by_error(answer: DepthAnswer) -> bool:
    """Whether accuracies are spaced by the logarithm of the error.

    So 90, 99 and 99.9 % are equally far apart, and one can tell good networks apart beside ones that learned nothing.
    """
    return "accuracy" in answer.measure and _is_wide(*score_limits(answer))


def _is_wide(low: float, high: float) -> bool:
    return high > 0.9 and high - low > 0.3


def below_the_axis(answer: DepthAnswer) -> list[str]:
    """What the axis of scores leaves out, in words."""
    lowest, _ = score_limits(answer)
    found = []
    for curve in score_curves(answer):
        left_out = [
            f"{depth} ({brief_score(answer.measure, value)})"
            for depth, value in zip(curve.depth, curve.score, strict=True)
            if value < lowest
        ]
        if left_out and not curve.thin:
            found.append(f"{curve.name} of depth {', '.join(left_out)}")
        elif left_out:
            found.append("parts of the thin curve")
    for other in answer.others:
        if other.score is not None and other.score < lowest:
            found.append(f"{other.name} ({brief_score(answer.measure, other.score)})")
    if answer.guess_score < lowest:
        found.append(f"a blind guess ({brief_score(answer.measure, answer.guess_score)})")
    return found


def depth_ticks(answer: DepthAnswer) -> list[int]:
    """The depths that were trained, those first whose label matters most where not all fit."""
    depths = sorted({point.depth for point in answer.points})
    if not depths:
        return []
    first = [answer.depth] if answer.depth is not None and answer.depth in depths else []
    powers = [depth for depth in depths if depth & (depth - 1) == 0]
    return list(dict.fromkeys([*first, depths[-1], *powers, *depths]))


def answer_words(answer: DepthAnswer) -> str:
    """The answer with its interval: 4 layers (95 % interval 3 to 6)."""
    if answer.depth is None:
        return "none"
    layers = "linear model" if answer.depth == 0 else plural(answer.depth, "layer")
    layers += " per stage" if answer.depth and answer.unit != "layers" else ""
    if answer.interval is None:
        return layers
    return f"{layers} (95 % interval {answer.interval[0]} to {answer.interval[1]})"


def axis_names(answer: DepthAnswer) -> tuple[str, str]:
    """The names of the axes of depth and score."""
    unit = "hidden layers" if answer.unit == "layers" else answer.unit
    return f"depth ({unit})", f"{MEASURES.get(answer.measure, answer.measure)} on held-out data"


def marked_point(answer: DepthAnswer) -> tuple[int, float] | None:
    """Depth and score of the answer; None if there is none."""
    if answer.depth is None:
        return None
    point = answer.point(answer.depth, answer.kind)
    return None if point is None or not math.isfinite(point.score) else (point.depth, point.score)
