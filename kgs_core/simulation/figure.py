"""Pictures as a list of shapes, written as SVG text or drawn by `kgs_core.cli.simulate.png`: no plotting library."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

Point = tuple[float, float]
INK = "#222222"
"""Of text, unless it has a colour of its own."""
DASH = 4
"""Pixels that a dash is long, and that are left out after it."""
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points, in pixels from the left and from the top."""

    points: Sequence[Point]
    color: str
    width: float = 1.0
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Dot:
    """A filled circle."""

    at: Point
    color: str
    radius: float = 3.0


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text; `at` is the end of its base line that `anchor` names."""

    at: Point
    text: str
    color: str = INK
    anchor: Anchor = "start"
    bold: bool = False


Shape = Line | Dot | Text


@dataclass(frozen=True, slots=True)
class Picture:
    """Shapes on white, drawn in their order."""

    width: int
    height: int
    shapes: Sequence[Shape]


def svg(picture: Picture) -> str:
    """The picture as SVG text."""
    drawn = "\n".join(_svg(shape) for shape in picture.shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{picture.width}" height="{picture.height}" '
        f'viewBox="0 0 {picture.width} {picture.height}" font-family="sans-serif" font-size="11" fill="{INK}">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{drawn}\n</svg>\n'
    )


def _svg(shape: Shape) -> str:
    match shape:
        case Line(points, color, width, dashed):
            path = " ".join(f"{_short(x)},{_short(y)}" for x, y in points)
            thick = f' stroke-width="{width:g}"' if width != 1 else ""
            style = f' stroke-dasharray="{DASH}"' if dashed else ""
            return f'<polyline fill="none" stroke="{color}"{thick}{style} points="{path}"/>'
        case Dot((x, y), color, radius):
            return f'<circle cx="{_short(x)}" cy="{_short(y)}" r="{radius:g}" fill="{color}"/>'
        case Text((x, y), text, color, anchor, bold):
            style = f' fill="{color}"' if color != INK else ""
            style += f' text-anchor="{anchor}"' if anchor != "start" else ""
            style += ' font-weight="bold"' if bold else ""
            return f'<text x="{_short(x)}" y="{_short(y)}"{style}>{escape(text)}</text>'


def _short(value: float) -> str:
    """A tenth of a pixel is enough; pictures are kept inside other things."""
    return f"{value:.1f}".removesuffix(".0")
