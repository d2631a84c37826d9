"""Line charts of the page: SVG that takes its colours from the page's style."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from verydeep.report.figures._axes import choose_ticks, error_position, error_ticks, spread_labels, widen

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 76, 14, 12, 46  # margins for labels
_LETTER, _LINE = 7.2, 17  # the room of a letter and of a line of text


@dataclass(frozen=True)
class Series:
    """A curve, with None where it has no value.

    Attributes:
        name: Its name in the key.
        values: Its values.
        colour: The number of its colour.
        line: 0 is solid, 1 dashed, 2 dotted.
        low: The lower ends of the intervals of its values; empty if it has none.
        high: The upper ends.
        thin: Whether it is drawn thinner than others and without dots.
    """

    name: str
    values: Sequence[float | None]
    colour: int = 0
    line: int = 0
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    thin: bool = False


@dataclass(frozen=True)
class Chart:
    """Curves that share the same x values.

    Attributes:
        label: A description for screen readers.
        x: The x values, ascending.
        series: The curves.
        x_name: The name of the x axis.
        y_name: The name of the y axis.
        log: Whether the y axis is logarithmic.
        percent: Whether y values are fractions, shown as percentages.
        floor: Where the y axis is cut off; lower values are not drawn. None shows all.
        rule: The y value and the name of a dashed horizontal line.
        mark: The x, y and name of a highlighted point.
        log_x: Whether x values are at log2(1 + x), so that 0, 1, 2, 4, 8 are about equally far apart.
        ticks: The x values to label, the most important first; by default, round numbers.
        joined: Whether a curve goes on beyond x values where it has none.
        bars: Whether values are bars from zero.
        by_error: Whether y values are accuracies that are spaced by the logarithm of the error.
        limits: The ends of the y axis; lower values are drawn at its lower end, as triangles. By default, it fits.
        rules: The y values and labels of horizontal lines; the labels are in the margin on the right.
        span: The ends of a range of x values that is shaded.
        least: The smallest extent of a linear y axis, so that noise does not look like a signal.
        width: The width of the drawing.
        height: Its height.
        right: The margin on the right.
    """

    label: str
    x: Sequence[float]
    series: Sequence[Series]
    x_name: str
    y_name: str
    log: bool = False
    percent: bool = False
    floor: float | None = None
    rule: tuple[float, str] | None = None
    mark: tuple[float, float, str] | None = None
    log_x: bool = False
    ticks: Sequence[float] = ()
    joined: bool = False
    bars: bool = False
    by_error: bool = False
    limits: tuple[float, float] | None = None
    rules: Sequence[tuple[float, str]] = ()
    span: tuple[float, float] | None = None
    least: float = 0.0
    width: int = WIDTH
    height: int = HEIGHT
    right: int = RIGHT

    left = LEFT
    top = TOP

    def to_dict(self) -> dict[str, Any]:
        """The values for the page's script."""
        series = []
        for s in self.series:
            found: dict[str, Any] = {"name": s.name, "values": [_finite(v) for v in s.values]}
            if s.low:
                found |= {"low": [_finite(v) for v in s.low], "high": [_finite(v) for v in s.high]}
            series.append(found)
        return {
            "x": list(self.x), "across": [self.x_position(x) for x in self.x], "series": series,
            "name": self.x_name.removesuffix(" (from 1)"), "percent": self.percent, "sparse": self.joined,
        }  # fmt: skip

    @property
    def bottom(self) -> int:
        """Where the x axis is."""
        return self.height - BOTTOM

    @property
    def end(self) -> int:
        """Where the x axis ends."""
        return self.width - self.right

    def _along(self, x: float) -> float:
        return math.log2(1 + x) if self.log_x else x

    @property
    def x_range(self) -> tuple[float, float]:
        """The ends of the x axis; of a logarithmic one, in powers of 2."""
        low, high = self._along(self.x[0]), self._along(self.x[-1])
        if high == low:
            return low - 1, high + 1
        room = 0.5 if self.bars else 0.035 * (high - low) if self.log_x else 0
        return low - room, high + room

    @property
    def y_range(self) -> tuple[float, float]:
        """The ends of the y axis."""
        if self.limits is not None:
            return self.limits
        values = [v for s in self.series for part in (s.values, s.low, s.high) for v in part]
        shown = [v for v in values if v is not None and self._shown(v)]
        shown += [self.rule[0]] if self.rule and self._shown(self.rule[0]) else []
        shown += [0.0] if self.bars else []
        low, high = (min(shown), max(shown)) if shown else (0.0, 1.0)
        if self.log:
            return (low / 1.1, high * 1.1) if shown else (0.1, 1.0)
        room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        return widen(low - room, high + room, self.least, fraction=self.percent)

    def _shown(self, value: float) -> bool:
        return math.isfinite(value) and (value > 0 or not self.log) and (self.floor is None or value >= self.floor)

    def x_position(self, x: float) -> float:
        """The horizontal position of an x value."""
        left, right = self.x_range
        return round(LEFT + (self._along(x) - left) / (right - left) * (self.end - LEFT), 1)

    def y_position(self, y: float) -> float:
        """The vertical position of a y value."""
        scale = math.log10 if self.log else error_position if self.by_error else float
        if self.limits is not None:
            y = min(max(y, self.limits[0]), self.limits[1])
        low, high, value = (scale(v) for v in (*self.y_range, y))
        return round(self.bottom - (value - low) / (high - low) * (self.bottom - TOP), 1)

    def path(self, series: Series) -> str:
        """The SVG path of a curve, with gaps where it has no value, unless it is joined."""
        steps, pen = [], "M"
        for x, y in zip(self.x, series.values, strict=True):
            if y is not None and self._shown(y) and not (series.thin and self._below(y)):
                steps.append(f"{pen}{self.x_position(x)} {self.y_position(y)}")
                pen = "L"
            elif not self.joined:
                pen = "M"
        return "".join(steps)

    def intervals(self, series: Series) -> list[tuple[float, float, float]]:
        """The x position and both ends of every interval of a curve."""
        if not series.low:
            return []
        found = zip(self.x, series.low, series.high, strict=True)
        return [
            (self.x_position(x), self.y_position(low), self.y_position(high))
            for x, low, high in found
            if low is not None and high is not None and self._shown(low) and self._shown(high)
        ]

    def band(self, series: Series) -> str:
        """The SVG path around the intervals of a curve; empty for bars, or with fewer than two."""
        found = [] if self.bars else self.intervals(series)
        if len(found) < 2:
            return ""
        upper = "L".join(f"{x} {high}" for x, _, high in found)
        lower = "L".join(f"{x} {low}" for x, low, _ in reversed(found))
        return f"M{upper}L{lower}Z"

    def whiskers(self, series: Series) -> list[tuple[float, float, float]]:
        """The intervals that are drawn as lines: those of bars, and those of single points."""
        found = self.intervals(series)
        return found if self.bars or len(found) == 1 else []

    def boxes(self, series: Series) -> list[tuple[float, float, float, float]]:
        """Left, top, width and height of every bar."""
        zero, step = self.y_position(0), (self.end - LEFT) / len(self.x)
        found = []
        for x, value in zip(self.x, series.values, strict=True):
            if value is not None and self._shown(value):
                y = self.y_position(value)
                left, room = self.x_position(x) - 0.4 * step, 0.8 * step
                found.append((round(left, 1), min(y, zero), round(room, 1), round(abs(zero - y), 1)))
        return found

    def dots(self, series: Series) -> list[tuple[float, float]]:
        """The dots of a single or short curve, which make isolated values visible; none if there are many points."""
        count = sum(value is not None for value in series.values) if self.joined else len(self.x)
        if count > (80 if len(self.series) == 1 else 16 if self.joined else 12) or (series.thin and count > 1):
            return []
        points = zip(self.x, series.values, strict=True)
        return [
            (self.x_position(x), self.y_position(y))
            for x, y in points
            if y is not None and self._shown(y) and not self._below(y)
        ]

    def triangles(self, series: Series) -> list[tuple[float, float]]:
        """Where values below the axis are drawn."""
        points = [] if series.thin else zip(self.x, series.values, strict=True)
        return [(self.x_position(x), self.y_position(y)) for x, y in points if y is not None and self._below(y)]

    def _below(self, value: float) -> bool:
        return self.limits is not None and value < self.limits[0]

    @property
    def rule_labels(self) -> list[tuple[float, float, str]]:
        """The horizontal lines: their position, that of their label, which no other label overlaps, and the label."""
        shown = [(y, text) for y, text in self.rules if self.limits is None or y >= self.limits[0]]
        lines = [self.y_position(y) for y, _ in shown]
        places = spread_labels(lines, _LINE, TOP, self.bottom)
        return [(line, round(place, 1), text) for line, place, (_, text) in zip(lines, places, shown, strict=True)]

    @property
    def span_box(self) -> tuple[float, float]:
        """Where the shaded range begins, and its width: never less than what one can see."""
        assert self.span is not None
        left, right = (self.x_position(x) for x in self.span)
        left, right = max(left - 9, LEFT), min(right + 9, self.end)
        return round(left, 1), round(right - left, 1)

    @property
    def x_ticks(self) -> list[tuple[float, str]]:
        """Positions and labels."""
        if self.ticks:
            places = [(self.x_position(t), f"{t:g}") for t in self.ticks]
            return choose_ticks([(place, text, _LETTER * (len(text) + 1)) for place, text in places])
        from matplotlib.ticker import MaxNLocator

        left, right = self.x_range
        ticks = MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]).tick_values(left, right)
        return [(self.x_position(float(t)), f"{t:g}") for t in ticks if left <= t <= right]

    @property
    def y_ticks(self) -> list[tuple[float, str]]:
        """Positions and labels."""
        from matplotlib.ticker import LogLocator, MaxNLocator

        low, high = self.y_range
        if self.by_error:
            places = [(self.y_position(t), f"{100 * t:g}%", _LINE) for t in error_ticks((low, high))]
            return choose_ticks(places)
        decades = math.log10(high / low) if self.log else 0
        every = LogLocator(subs=(1,) if decades > 3 else (1, 2, 5), numticks=7)
        ticks = (every if decades > 1 else MaxNLocator(5)).tick_values(low, high)
        shown = [float(t) for t in ticks if low <= t <= high]
        unit = 100 if self.percent else 1
        digits = 0 if self.log or len(shown) < 2 else _digits(unit * (shown[1] - shown[0]))
        return [(self.y_position(t), _tick(unit * t, digits) + ("%" if self.percent else "")) for t in shown]


def _digits(step: float) -> int:
    """The digits after the point that show ticks exactly which are multiples of `step`."""
    if step <= 0:
        return 0
    first = max(0, math.ceil(-math.log10(step) - 1e-9))
    exact = (digits for digits in range(first, first + 3) if abs(step * 10**digits - round(step * 10**digits)) < 1e-6)
    return next(exact, first)


def _tick(value: float, digits: int) -> str:
    """A short label: one of more than six characters would reach into the title of the axis."""
    text = f"{value:.{digits}f}" if digits else f"{value:.4g}"
    text = text if len(text) <= 6 else f"{value:.3g}"
    return text.replace("e+0", "e").replace("e+", "e")


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None
