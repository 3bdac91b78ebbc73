"""The picture of `kgs bench packing`: time of a step against partitions, and at each size who is on the front."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgs_core.benchmarks.packing_run import ScaleResult
from kgs_core.cli.bench.packing_table import by_algorithm
from kgs_core.simulation.charts import COLORS, GRAY, Chart, charts
from kgs_core.simulation.comparison import pareto_front
from kgs_core.simulation.figure import Dot, Line, Picture, Point, Shape, Text

_WIDTH, _HEIGHT = 640, 420
_LEFT, _TOP, _RIGHT, _BOTTOM = 60, 30, 560, 372
_LETTERS = 11
_MS = ((1, "s"), (1e-3, "ms"), (1e-6, "us"))


def packing_picture(results: Sequence[ScaleResult]) -> Picture:
    """Times on the left; on the right a front for each size."""
    times = scale_picture(
        {name: [(one.partitions, min(one.times_s)) for one in same] for name, same in by_algorithm(results).items()}
    )
    sizes = sorted({one.partitions for one in results})
    fronts = charts([_front([one for one in results if one.partitions == size]) for size in sizes], columns=2)
    moved = [_to_the_right(shape, times.width) for shape in fronts.shapes]
    return Picture(times.width + fronts.width, max(times.height, fronts.height), [*times.shapes, *moved])


def _front(results: Sequence[ScaleResult]) -> Chart:
    """Consumers and mean Rscore of one load; CBS where it is known, else what is above the bound."""
    known = all(one.cbs is not None for one in results)
    dots = {one.algorithm: (one.excess if one.cbs is None else one.cbs, one.rscore) for one in results}
    return Chart(
        f"{results[0].partitions:,} partitions",
        "cardinal bin score (CBS)" if known else "consumers over the lower bound",
        "mean Rscore E[R]",
        dots=dots,
        path=pareto_front(dots),
    )


def _to_the_right(shape: Shape, by: float) -> Shape:
    match shape:
        case Line(points):
            return replace(shape, points=[(x + by, y) for x, y in points])
        case Dot((x, y)) | Text((x, y)):
            return replace(shape, at=(x + by, y))


def scale_picture(lines: Mapping[str, Sequence[Point]]) -> Picture:
    """A line for each label; points are partitions and seconds, both above 0."""
    points = [point for line in lines.values() for point in line]
    low_x, high_x = _decades([x for x, _ in points])
    low_y, high_y = _decades([y for _, y in points])

    def at(point: Point) -> Point:
        x = (math.log10(point[0]) - low_x) / (high_x - low_x)
        y = (math.log10(point[1]) - low_y) / (high_y - low_y)
        return _LEFT + x * (_RIGHT - _LEFT), _BOTTOM - y * (_BOTTOM - _TOP)

    shapes: list[Shape] = [
        Text((_LEFT, _TOP - 12), "Least time of a step", bold=True),
        Text((_RIGHT, _BOTTOM + 36), "partitions", anchor="end"),
    ]
    for power in range(low_x, high_x + 1):
        x, _ = at((10.0**power, 10.0**low_y))
        shapes.append(Line([(x, _TOP), (x, _BOTTOM)], GRAY, 0.4))
        shapes.append(Text((x, _BOTTOM + 16), f"{10**power:,}", anchor="middle"))
    for power in range(low_y, high_y + 1):
        _, y = at((10.0**low_x, 10.0**power))
        shapes.append(Line([(_LEFT, y), (_RIGHT, y)], GRAY, 0.4))
        shapes.append(Text((_LEFT - 6, y + 4), _duration(power), anchor="end"))
    for number, line in enumerate(lines.values()):
        color = COLORS[number % len(COLORS)]
        shapes.append(Line([at(point) for point in line], color, 1.2, dashed=number >= len(COLORS)))
        shapes += [Dot(at(point), color, 2) for point in line]
    return Picture(_WIDTH, _HEIGHT, [*shapes, *_labels({label: at(line[-1]) for label, line in lines.items()})])


def _labels(ends: Mapping[str, Point]) -> list[Shape]:
    """Names beside the last points, moved down where they would meet, and up again where that ends below the frame."""
    colors = {label: COLORS[number % len(COLORS)] for number, label in enumerate(ends)}
    ordered = sorted(ends, key=lambda label: (ends[label][1], label))
    heights: list[float] = []
    for label in ordered:
        heights.append(max([ends[label][1] + 4, *(height + _LETTERS for height in heights[-1:])]))
    lowest = float(_BOTTOM)
    for place in reversed(range(len(heights))):
        heights[place] = min(heights[place], lowest)
        lowest = heights[place] - _LETTERS
    return [
        Text((ends[label][0] + 8, height), label, colors[label]) for label, height in zip(ordered, heights, strict=True)
    ]


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Powers of ten around the values, at least one apart."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _duration(power: int) -> str:
    """`10 ms` for -2."""
    factor, unit = next((found for found in _MS if 10.0**power >= found[0] * (1 - 1e-9)), _MS[-1])
    return f"{10.0**power / factor:g} {unit}"
