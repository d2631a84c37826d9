"""Line charts of the page: SVG that takes its colours from the page's style."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 76, 14, 12, 46  # margins for labels
SIZE = {"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM}


@dataclass(frozen=True)
class Series:
    """A curve, with None where it has no value."""

    name: str
    values: Sequence[float | None]
    colour: int = 0
    line: int = 0  # 0 solid, 1 dashed, 2 dotted


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

    def to_dict(self) -> dict[str, Any]:
        """The values for the page's script."""
        (left, right), (low, high) = self._x_range, self._y_range
        return {
            "x": list(self.x),
            "series": [{"name": s.name, "values": [_finite(v) for v in s.values]} for s in self.series],
            "name": self.x_name.removesuffix(" (from 1)"), "percent": self.percent, "log": self.log,
            "box": (LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM), "range": (left, right, low, high),
        }  # fmt: skip

    @property
    def _x_range(self) -> tuple[float, float]:
        return (self.x[0], self.x[-1]) if self.x[-1] > self.x[0] else (self.x[0] - 1, self.x[0] + 1)

    @property
    def _y_range(self) -> tuple[float, float]:
        values = [v for s in self.series for v in s.values if v is not None and self._shown(v)]
        values += [self.rule[0]] if self.rule and self._shown(self.rule[0]) else []
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        if self.log:
            return (low / 1.1, high * 1.1) if values else (0.1, 1.0)
        room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        return low - room, high + room

    def _shown(self, value: float) -> bool:
        return math.isfinite(value) and (value > 0 or not self.log) and (self.floor is None or value >= self.floor)

    def x_position(self, x: float) -> float:
        """The horizontal position of an x value."""
        left, right = self._x_range
        return round(LEFT + (x - left) / (right - left) * (WIDTH - LEFT - RIGHT), 1)

    def y_position(self, y: float) -> float:
        """The vertical position of a y value."""
        scale = math.log10 if self.log else float
        low, high, value = (scale(v) for v in (*self._y_range, y))
        return round(HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    def path(self, series: Series) -> str:
        """The SVG path of a curve, with gaps where it has no value."""
        steps, pen = [], "M"
        for x, y in zip(self.x, series.values, strict=True):
            if y is not None and self._shown(y):
                steps.append(f"{pen}{self.x_position(x)} {self.y_position(y)}")
                pen = "L"
            else:
                pen = "M"
        return "".join(steps)

    def dots(self, series: Series) -> list[tuple[float, float]]:
        """The dots of a single or short curve, which make isolated values visible; none if there are many points."""
        if len(self.x) > (80 if len(self.series) == 1 else 12):
            return []
        points = zip(self.x, series.values, strict=True)
        return [(self.x_position(x), self.y_position(y)) for x, y in points if y is not None and self._shown(y)]

    @property
    def x_ticks(self) -> list[tuple[float, str]]:
        """Positions and labels."""
        from matplotlib.ticker import MaxNLocator

        left, right = self._x_range
        ticks = MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]).tick_values(left, right)
        return [(self.x_position(float(t)), f"{t:g}") for t in ticks if left <= t <= right]

    @property
    def y_ticks(self) -> list[tuple[float, str]]:
        """Positions and labels."""
        from matplotlib.ticker import LogLocator, MaxNLocator

        low, high = self._y_range
        decades = math.log10(high / low) if self.log else 0
        every = LogLocator(subs=(1,) if decades > 3 else (1, 2, 5), numticks=7)
        ticks = (every if decades > 1 else MaxNLocator(5)).tick_values(low, high)
        shown = [float(t) for t in ticks if low <= t <= high]
        return [(self.y_position(t), f"{100 * t:.4g}%" if self.percent else f"{t:.4g}") for t in shown]


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None
