"""Names beside what they name in a chart of matplotlib's, where they cover nothing. Lengths are points, 72 an inch."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

Point = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, bottom, right and top."""

_DISTANCES = (6, 8, 11, 15, 20, 26, 33, 41, 50, 60, 72, 86, 102, 120, 140)
_TURNS = (0, 8, 4, 12, 2, 14, 6, 10, 1, 15, 7, 9, 3, 13, 5, 11)
"""Sixteenths of a circle: right, left, above, below, then between these."""
_BESIDE = 0.4
"""Cosine from which a place is right or left of a dot, no longer above or below it."""
_DOT, _LINE, _STEP, _AIR, _END = 3.0, 1.0, 3.0, 3.0, 14.0
_HIDDEN, _STRUCK = 100, 5
"""Times that it is worse to cover a dot or a name, or to strike it through, than to cover a bit of a line."""
_NEAR = 12
"""Points from a dot to its name below which no leader is wanted."""
_LEADER = {
    "arrowstyle": "-",
    "color": "#a0a0a0",
    "linewidth": 0.6,
    "shrinkA": 0.0,
    "shrinkB": 2.0,
    "relpos": (0.0, 0.5),
}


class _Place(NamedTuple):
    """Where a name may stand, from its dot: the middle of it or of one of its sides, and where a leader ends."""

    offset: Point
    side: Literal["left", "center", "right"]
    end: Point

    def box(self, dot: Point, size: Point) -> Box:
        """What a name of that size covers."""
        x, y = dot[0] + self.offset[0], dot[1] + self.offset[1]
        left = x - size[0] * {"left": 0.0, "center": 0.5, "right": 1.0}[self.side]
        return left, y - size[1] / 2, left + size[0], y + size[1] / 2


def label_dots(ax: "Axes", dots: Mapping[str, Point], colors: Mapping[str, str], renderer: "RendererBase") -> None:
    """Each name as near to its dot as it covers no other dot, name or line; from afar with a thin line to the dot.

    Args:
        ax: whose layout and scales are final.
        dots: name -> place, in units of the data.
    """
    pixels = _pixels(renderer)

    def box_of(thing: "Artist") -> Box:
        found = thing.get_window_extent(renderer)
        return found.x0 / pixels, found.y0 / pixels, found.x1 / pixels, found.y1 / pixels

    at: dict[str, Point] = {name: tuple(ax.transData.transform(dot) / pixels) for name, dot in dots.items()}
    solid = [*(_around(dot, _DOT) for dot in at.values()), *(box_of(text) for text in ax.texts)]
    thin = [_around(point, _LINE) for line in ax.get_lines() for point in _along(_path(line) / pixels)]
    for name in sorted(dots, key=lambda name: (-at[name][1], at[name][0], name)):
        text = ax.annotate(name, dots[name], (0, 0), textcoords="offset points", va="center", color=colors[name])
        left, bottom, right, top = box_of(text)
        size = right - left + _AIR, top - bottom
        place = _best(at[name], size, box_of(ax), solid, thin)
        text.set(ha=place.side, zorder=4)
        text.xyann = place.offset
        solid.append(place.box(at[name], size))
        if leader := _leader(at[name], place):
            ax.annotate("", dots[name], place.end, textcoords="offset points", arrowprops=_LEADER, zorder=2)
            thin += [_around(point, _LINE) for point in leader]


def _best(dot: Point, size: Point, frame: Box, solid: Sequence[Box], thin: Sequence[Box]) -> _Place:
    """The nearest place that covers nothing, else the first of those that cover least; always within the frame."""
    dots_and_names, lines = np.array(solid), np.array(thin).reshape(-1, 4)
    best, least = _Place((_DISTANCES[0], 0.0), "left", (_DISTANCES[0], 0.0)), math.inf
    for place in _places(size[1]):
        box = place.box(dot, size)
        if box[0] < frame[0] or box[1] < frame[1] or box[2] > frame[2] or box[3] > frame[3]:
            continue
        struck = sum(_covered(dots_and_names, _around(at, 0.0)) for at in _leader(dot, place))
        covered = _HIDDEN * _covered(dots_and_names, box) + _STRUCK * struck + _covered(lines, box)
        if covered < least:
            best, least = place, covered
        if not covered:
            break
    return best


def _places(height: float) -> Iterator[_Place]:
    for distance in _DISTANCES:
        for turn in _TURNS:
            x, y = math.cos(turn * math.pi / 8), math.sin(turn * math.pi / 8)
            side: Literal["left", "center", "right"] = "left" if x > _BESIDE else "right" if x < -_BESIDE else "center"
            middle = x * distance, y * (distance + height / 2)
            end = (middle[0], middle[1] - math.copysign(height / 2, y)) if side == "center" else middle
            yield _Place(middle, side, end)


def _leader(dot: Point, place: _Place) -> list[Point]:
    """Places along the line from a dot to its name; none where the name is near."""
    if math.hypot(*place.end) < _NEAR:
        return []
    end = dot[0] + place.end[0], dot[1] + place.end[1]
    return [at for at in _along(np.array([dot, end])) if math.dist(at, dot) > _DOT + _STEP < math.dist(at, end)]


def _pixels(renderer: "RendererBase") -> float:
    """How many a point is."""
    return float(np.asarray(renderer.points_to_pixels(1.0)))


def _path(line: "Line2D") -> NDArray[np.float64]:
    """Where a line goes, in pixels."""
    return np.asarray(line.get_transform().transform(np.column_stack(line.get_data())), dtype=np.float64)


def _along(line: NDArray[np.float64]) -> Iterator[Point]:
    for begin, end in pairwise(line):
        for share in np.linspace(0, 1, max(2, int(math.dist(begin, end) / _STEP))):
            x, y = begin + (end - begin) * share
            yield float(x), float(y)


def _covered(boxes: NDArray[np.float64], box: Box) -> int:
    left, bottom, right, top = boxes.T
    return int(np.sum((left < box[2]) & (box[0] < right) & (bottom < box[3]) & (box[1] < top)))


def _around(point: Point, reach: float) -> Box:
    return point[0] - reach, point[1] - reach, point[0] + reach, point[1] + reach


def label_ends(ax: "Axes", lines: Mapping[str, Sequence[Point]], colors: Mapping[str, str]) -> "list[Annotation]":
    """The name of each line right of its last point; `spread_out` moves them when the layout is final."""
    return [
        ax.annotate(
            name,
            line[-1],
            (_END, 0.0),
            textcoords="offset points",
            va="center",
            color=colors[name],
            arrowprops=_LEADER,
            annotation_clip=False,
        )
        for name, line in lines.items()
        if line
    ]


def spread_out(ends: "Sequence[Annotation]", frame: "Bbox", renderer: "RendererBase") -> None:
    """Move names up or down so that none covers another one, and none is above the frame.

    Args:
        ends: of `label_ends`.
        frame: of the axes, in pixels.
    """
    boxes = {text: text.get_window_extent(renderer) for text in ends}
    middle = {text: (box.y0 + box.y1) / 2 for text, box in boxes.items()}
    ordered = sorted(ends, key=lambda text: (middle[text], text.get_text()))
    heights: list[float] = []
    for text in ordered:
        heights.append(max([middle[text], *(height + boxes[text].height for height in heights[-1:])]))
    highest = frame.y1
    for number in reversed(range(len(ordered))):
        heights[number] = min(heights[number], highest)
        highest = heights[number] - boxes[ordered[number]].height
    for text, height in zip(ordered, heights, strict=True):
        text.xyann = (_END, (height - middle[text]) / _pixels(renderer))
