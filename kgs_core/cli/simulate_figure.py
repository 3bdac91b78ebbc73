"""Pictures as a list of shapes, written as SVG text or handed to `simulate_png`: no plotting library for a few dots."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

Point = tuple[float, float]
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points, in pixels from the left and from the top."""

    points: Sequence[Point]
    color: str
    width: float = 1.0


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
    color: str = "#222222"
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
        f'viewBox="0 0 {picture.width} {picture.height}" font-family="sans-serif" font-size="11">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{drawn}\n</svg>\n'
    )


def _svg(shape: Shape) -> str:
    match shape:
        case Line(points, color, width):
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            return f'<polyline fill="none" stroke="{color}" stroke-width="{width:g}" points="{path}"/>'
        case Dot((x, y), color, radius):
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{color}"/>'
        case Text((x, y), text, color, anchor, bold):
            style = ' font-weight="bold"' if bold else ""
            place = f'x="{x:.1f}" y="{y:.1f}" fill="{color}" text-anchor="{anchor}"'
            return f"<text {place}{style}>{escape(text)}</text>"
