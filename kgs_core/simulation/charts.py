"""Scatter and line charts made of the shapes of `figure`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kgs_core.simulation.figure import Dot, Line, Picture, Point, Shape, Text

COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22")
GRAY = "#888888"
_WIDTH, _HEIGHT = 400, 300
_LEFT, _TOP, _RIGHT, _BOTTOM = 56, 30, 24, 42
_LABEL, _LETTER = 11, 6
_TICKS = 5


@dataclass(frozen=True, slots=True)
class Chart:
    """One panel.

    Attributes:
        dots: label -> x and y.
        path: labels of dots that a line joins, in order of x: the front.
        lines: label -> points in order of x.
        mark: an x with a dashed line and its label: a bound.
        x_from_zero: whether the scale of x begins at 0 rather than near the least.
        log_y: whether equal distances upwards are equal ratios, but for the first second.
    """

    title: str
    x_name: str
    y_name: str
    dots: Mapping[str, Point] = field(default_factory=dict)
    path: Sequence[str] = ()
    lines: Mapping[str, Sequence[Point]] = field(default_factory=dict)
    mark: tuple[float, str] | None = None
    x_from_zero: bool = True
    log_y: bool = False


def charts(panels: Sequence[Chart], columns: int = 3) -> Picture:
    """The panels in rows, each with scales of its own; one name has one colour in all of them."""
    columns = max(1, min(columns, len(panels)))
    names = dict.fromkeys(name for panel in panels for name in (*panel.dots, *panel.lines))
    colors = {name: COLORS[number % len(COLORS)] for number, name in enumerate(names)}
    shapes: list[Shape] = []
    for number, panel in enumerate(panels):
        corner = number % columns * _WIDTH, number // columns * _HEIGHT
        shapes += _Panel(panel, corner, colors).shapes()
    return Picture(columns * _WIDTH, -(-len(panels) // columns) * _HEIGHT, shapes)


class _Panel:
    """A chart at its place on the page."""

    def __init__(self, chart: Chart, corner: tuple[int, int], colors: Mapping[str, str]) -> None:
        self._chart = chart
        self._colors = colors
        self._left, self._top = corner[0] + _LEFT, corner[1] + _TOP
        self._right, self._bottom = corner[0] + _WIDTH - _RIGHT, corner[1] + _HEIGHT - _BOTTOM
        points = [*chart.dots.values(), *(point for line in chart.lines.values() for point in line)]
        xs = [x for x, _ in points] + ([chart.mark[0]] if chart.mark is not None else [])
        self._x = _scale(xs, from_zero=chart.x_from_zero)
        self._y = _scale([self._height(y) for _, y in points], from_zero=not chart.lines)

    def shapes(self) -> list[Shape]:
        """Frame and scales, then what is shown."""
        return [*self._frame(), *self._mark(), *self._lines(), *self._path(), *self._dots()]

    def _at(self, point: Point) -> Point:
        (low_x, high_x), (low_y, high_y) = self._x, self._y
        return (
            self._left + (point[0] - low_x) / (high_x - low_x) * (self._right - self._left),
            self._bottom - (self._height(point[1]) - low_y) / (high_y - low_y) * (self._bottom - self._top),
        )

    def _height(self, y: float) -> float:
        return math.log10(1 + y) if self._chart.log_y else y

    def _frame(self) -> list[Shape]:
        left, top, right, bottom = self._left, self._top, self._right, self._bottom
        shapes: list[Shape] = [
            Text((left, top - 12), self._chart.title, bold=True),
            Line([(left, top), (left, bottom), (right, bottom)], "#444444"),
            Text((right, bottom + 32), self._chart.x_name, anchor="end"),
            Text((right, top - 12), self._chart.y_name, anchor="end"),
        ]
        for value in _ticks(self._x):
            x, _ = self._at((value, 0.0))
            shapes += [Line([(x, bottom), (x, bottom + 4)], "#444444")]
            shapes += [Text((x, bottom + 16), f"{value:.6g}", anchor="middle")]
        for value in self._heights():
            _, y = self._at((self._x[0], value))
            shapes += [
                Line([(left - 4, y), (left, y)], "#444444"),
                Text((left - 6, y + 4), f"{value:.6g}", anchor="end"),
            ]
        return shapes

    def _heights(self) -> list[float]:
        if not self._chart.log_y:
            return _ticks(self._y)
        return [0.0, *(float(10**power) for power in range(math.floor(self._y[1]) + 1))]

    def _mark(self) -> list[Shape]:
        if self._chart.mark is None:
            return []
        value, label = self._chart.mark
        x, _ = self._at((value, 0.0))
        line = Line([(x, self._top), (x, self._bottom)], GRAY, dashed=True)
        return [line, Text((x + 3, self._top + 8), label, color=GRAY)]

    def _lines(self) -> list[Shape]:
        shapes: list[Shape] = []
        for number, (label, line) in enumerate(self._chart.lines.items()):
            color = self._colors[label]
            shapes.append(Line([self._at(point) for point in line], color, 1.2))
            shapes.append(Text((self._left + 6 + 84 * (number % 4), self._top + 8 + 12 * (number // 4)), label, color))
        return shapes

    def _path(self) -> list[Shape]:
        points = sorted(self._chart.dots[label] for label in self._chart.path)
        return [Line([self._at(point) for point in points], GRAY)] if len(points) > 1 else []

    def _dots(self) -> list[Shape]:
        places = {label: self._at(point) for label, point in self._chart.dots.items()}
        taken = [_Box(x - 4, x + 4, y + 4) for x, y in places.values()]
        dots: list[Shape] = []
        leaders: list[Shape] = []
        labels: list[Shape] = []
        for label, (x, y) in sorted(places.items(), key=lambda item: (item[1][1], item[0])):
            color = self._colors[label]
            width = _LETTER * len(label)
            begin = (
                x + 6 if x + 6 + width <= self._right else x - 6 - width
            )  # within the axes, on one side or the other
            line = self._free_line(taken, begin, begin + width, y + 4)
            taken.append(_Box(begin, begin + width, line))
            dots.append(Dot((x, y), color))
            if abs(line - y - 4) > _LABEL:
                near = begin - 2 if begin > x else begin + width + 2
                leaders.append(Line([(x, y), (near, line - 4)], "#bbbbbb", 0.6))
            labels.append(Text((begin, line), label, color))
        return [*leaders, *dots, *labels]  # a leader that crosses a label lies under it

    def _free_line(self, taken: "Sequence[_Box]", begin: float, end: float, line: float) -> float:
        """The height nearest to `line`, within the panel, where a label meets nothing; `line` where there is none."""
        for distance in range(self._bottom - self._top):
            for at in (line + distance, line - distance):
                inside = self._top + 8 <= at <= self._bottom - 2
                if inside and not any(
                    box.left < end and begin < box.right and abs(at - box.line) < _LABEL for box in taken
                ):
                    return at
        return line


@dataclass(frozen=True, slots=True)
class _Box:
    """Box that a label or a dot takes up, one line high."""

    left: float
    right: float
    line: float


def _scale(values: Sequence[float], *, from_zero: bool) -> tuple[float, float]:
    """Least and greatest of an axis, with a little room above."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = (high - low) * 0.06
    low = min(0.0, low) if from_zero else low - room
    if high <= low:
        return low, low + 1
    return low, high + room


def _ticks(scale: tuple[float, float]) -> list[float]:
    """Round values within the scale, about five of them."""
    low, high = scale
    raw = (high - low) / _TICKS
    power = 10 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 12) for number in range(first, math.floor(high / step + 1e-9) + 1)]
