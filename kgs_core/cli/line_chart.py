"""Small line charts as SVG text, by hand: no plotting library is worth its weight here."""

from collections.abc import Mapping, Sequence
from html import escape

Line = Sequence[tuple[float, float]]
"""x and y, in order of x."""

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 360, 150, 56, 26, 34
_COLUMNS = 3
_COLOURS = ("#b9c0c7", "#3f7fbf", "#c2452d", "#4a8f4a")


def line_charts(charts: Mapping[str, Mapping[str, Line]], x_name: str, y_name: str) -> str:
    """A page of charts, title -> name of the line -> line; each with a scale of its own that begins at 0."""
    rows = -(-len(charts) // _COLUMNS)
    width, height = _COLUMNS * (_WIDTH + _LEFT), rows * (_HEIGHT + _TOP + _GAP) + _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="11"><rect width="100%" height="100%" fill="white"/>'
    ]
    for number, (title, lines) in enumerate(charts.items()):
        x, y = (number % _COLUMNS) * (_WIDTH + _LEFT) + _LEFT, (number // _COLUMNS) * (_HEIGHT + _TOP + _GAP) + _TOP
        parts.append(f'<g transform="translate({x},{y})">{_chart(title, lines, x_name, y_name)}</g>')
    names = {name for lines in charts.values() for name in lines}
    order = [name for name in next(iter(charts.values()), {}) if name in names]
    for number, name in enumerate(order):
        parts.append(
            f'<text x="{_LEFT + 160 * number}" y="{height - 10}" fill="{_colour(number)}">&#9644; {escape(name)}</text>'
        )
    return "".join([*parts, "</svg>\n"])


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _chart(title: str, lines: Mapping[str, Line], x_name: str, y_name: str) -> str:
    points = [point for line in lines.values() for point in line] or [(0.0, 0.0)]
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    top = max([1e-12, *(y for _, y in points)])

    def place(x: float, y: float) -> str:
        return f"{(x - left) / max(right - left, 1e-12) * (_WIDTH - 20):.1f},{_HEIGHT - y / top * _HEIGHT:.1f}"

    drawn = "".join(
        f'<polyline fill="none" stroke="{_colour(number)}" stroke-width="1.5" '
        f'points="{" ".join(place(x, y) for x, y in line)}"/>'
        for number, line in enumerate(lines.values())
    )
    return (
        f'<text y="-8" font-weight="bold">{escape(title)}</text>'
        f'<path d="M0,0V{_HEIGHT}H{_WIDTH - 20}" fill="none" stroke="#444"/>{drawn}'
        f'<text x="-6" y="10" text-anchor="end">{top:.3g}</text><text x="-6" y="{_HEIGHT}" text-anchor="end">0</text>'
        f'<text x="0" y="{_HEIGHT + 14}">{left:.0f}</text>'
        f'<text x="{_WIDTH - 20}" y="{_HEIGHT + 14}" text-anchor="end">{right:.0f} {escape(x_name)}</text>'
        f'<text x="-6" y="{_HEIGHT / 2}" text-anchor="end">{escape(y_name)}</text>'
    )
