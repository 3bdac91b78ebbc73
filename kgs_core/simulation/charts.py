"""Charts of a comparison: what they show, and the pictures of them, which matplotlib draws when one is asked for.

A picture is white whatever is around it, so that it reads the same on a light page and on a dark one.
"""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from io import BytesIO
from textwrap import fill
from typing import TYPE_CHECKING, Literal, NamedTuple

from kgs_core.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Format = Literal["svg", "png"]
Scale = Literal["linear", "log y", "log"]
Point = tuple[float, float]

COLORS = (
    "#1f5fa8", "#b3261e", "#1d7a36", "#7b3fa0", "#a65200", "#00757f", "#8a2d6b", "#5f6b00", "#555555", "#8c4a2f",
)  # fmt: skip
"""Of names; after the last one they begin anew, with other marks and lines."""
_MARKS = "osD^v"
_LINES: tuple[Literal["-", "--", ":", "-."], ...] = ("-", "--", ":", "-.")
GRAY = "#767676"
_COLUMNS = 2
_SIZE_IN, _LARGE_IN = (4.4, 3.3), (6.8, 4.4)
_DPI = 144
_LEGEND_IN = 1.5
_TITLE_WIDTH = 44
"""Characters of a title that fit over the smaller chart."""
_STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same on every machine
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": GRAY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    "xtick.major.pad": 6,
    "xtick.major.size": 0,  # the grid shows where they are
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
    "xtick.minor.size": 0,
    "svg.fonttype": "none",  # text stays text: it can be read aloud, searched, and takes little room
    "svg.hashsalt": "kgs",  # the same picture is the same file
}


_FONT = "font-size: 9px; font-family: 'DejaVu Sans', sans-serif; "
"""As matplotlib writes it for each text; written once, it holds for all that have no other."""
_PLACES = re.compile(r' (?:d|x|y|transform)="[^"]*"')
_DIGITS = re.compile(r"-?\d+\.\d+")
_NUMBERED = re.compile(r' id="[a-zA-Z0-9.]+_\d+"| transform="rotate\(-0[^"]*"')


class _Appearance(NamedTuple):
    color: str
    mark: str
    line: Literal["-", "--", ":", "-."]


@dataclass(frozen=True, slots=True)
class Chart:
    """One panel.

    Attributes:
        dots: label -> x and y.
        path: labels of dots that a line joins, in order of x: the front.
        lines: label -> points in order of x.
        mark: an x with a dashed line and its label: a bound.
        x_from_zero: whether a linear x begins at 0 rather than near the least; nothing below 0 is left out.
        y_from_zero: the same of y.
        marked: whether each point of a line is shown by itself.
        scale: "log y": equal distances upwards are equal ratios from 1 on; "log": on both axes, for values above 0.
    """

    title: str
    x_name: str
    y_name: str
    dots: Mapping[str, Point] = field(default_factory=dict)
    path: Sequence[str] = ()
    lines: Mapping[str, Sequence[Point]] = field(default_factory=dict)
    mark: tuple[float, str] | None = None
    x_from_zero: bool = True
    y_from_zero: bool = True
    marked: bool = False
    scale: Scale = "linear"


def picture(panels: Sequence[Chart], kind: Format) -> bytes:
    """The panels as a file: the same bytes for the same panels, with no date and no version."""
    drawn = BytesIO()
    with _style():
        title = "; ".join(panel.title for panel in panels)
        about = (
            {"Title": title, **dict.fromkeys(("Date", "Creator", "Format", "Type"))}
            if kind == "svg"
            else {"Title": title, "Software": None}
        )
        _figure(panels).savefig(drawn, format=kind, dpi=_DPI, metadata=about)
    return _short(drawn.getvalue().decode()).encode() if kind == "svg" else drawn.getvalue()


def svg(panels: Sequence[Chart]) -> str:
    """The panels as an SVG element, also for a page to hold."""
    return picture(panels, "svg").decode()


def _short(text: str) -> str:
    """SVG of matplotlib's, half as long: places to a tenth of a point, no numbers of parts that nothing refers to."""
    text = _PLACES.sub(lambda place: _DIGITS.sub(lambda found: f"{float(found[0]):.1f}", place[0]), text)
    text = re.sub(r"\s*\n\s*", " ", _NUMBERED.sub("", text[text.index("<svg") :])).replace("> <", "><")
    return text.replace("<g/>", "").replace(_FONT, "").replace("<svg", f'<svg style="{_FONT}"', 1) + "\n"


def figure(panels: Sequence[Chart]) -> "Figure":
    """The panels as matplotlib's own figure, two abreast unless one of them is crowded, each with scales of its own.

    A name has one colour and mark in all of them; one legend, at the right, has them all.
    """
    with _style():
        return _figure(panels)


def _style() -> AbstractContextManager[None]:
    require("plots", "a picture")
    from matplotlib import style

    return style.context(_STYLE, after_reset=True)


def _figure(panels: Sequence[Chart]) -> "Figure":
    from matplotlib.figure import Figure

    large = len(panels) == 1
    columns = 1 if large else _COLUMNS
    rows = -(-len(panels) // columns)
    width, height = _LARGE_IN if large else _SIZE_IN
    drawn = Figure(figsize=(columns * width + _LEGEND_IN, rows * height), dpi=_DPI, layout="constrained")
    names = list(dict.fromkeys(name for panel in panels for name in (*panel.dots, *panel.lines)))
    looks = {name: _look(number) for number, name in enumerate(names)}
    for number, panel in enumerate(panels):
        _draw(panel, drawn.add_subplot(rows, columns, number + 1), looks)
    if names:
        drawn.legend([_handle(looks[name], name, panels) for name in names], names, loc="outside right upper")
    return drawn


def _look(number: int) -> _Appearance:
    turn, color = divmod(number, len(COLORS))
    return _Appearance(COLORS[color], _MARKS[turn % len(_MARKS)], _LINES[turn % len(_LINES)])


def _handle(look: _Appearance, name: str, panels: Sequence[Chart]) -> "Line2D":
    """What the legend shows of a name: its mark, its line or both."""
    from matplotlib.lines import Line2D

    mark = look.mark if any(name in panel.dots for panel in panels) else ""
    line = look.line if any(name in panel.lines for panel in panels) else ""
    return Line2D([], [], color=look.color, marker=mark, linestyle=line or "none", markersize=5)


def _draw(panel: Chart, ax: "Axes", looks: Mapping[str, _Appearance]) -> None:
    ax.set_title(fill(panel.title, _TITLE_WIDTH))
    ax.set_xlabel(panel.x_name)
    ax.set_ylabel(panel.y_name)
    ax.grid(clip_on=False)
    ax.set_axisbelow(True)
    front = sorted(panel.dots[label] for label in panel.path)
    if len(front) > 1:
        ax.plot(*zip(*front, strict=True), color=GRAY, linewidth=1, zorder=2)
    for name, points in panel.lines.items():
        look, marker = looks[name], "." if panel.marked or panel.scale == "log" else ""
        xs, ys = [x for x, _ in points], [y for _, y in points]
        ax.plot(xs, ys, look.line, color=look.color, label=name, marker=marker)
    for name, (x, y) in panel.dots.items():
        look = looks[name]
        ax.plot([x], [y], look.mark, color=look.color, label=name, markersize=5, zorder=3, clip_on=False)
    _scale(panel, ax)
    if panel.mark is not None:
        value, label = panel.mark
        ax.axvline(value, color=GRAY, linewidth=1, linestyle="--", zorder=1.5)
        top = ax.get_xaxis_transform()
        ax.annotate(label, (value, 1), (3, 0), xycoords=top, textcoords="offset points", va="top", color=GRAY)


def _scale(panel: Chart, ax: "Axes") -> None:
    from matplotlib.ticker import NullFormatter

    points = [*panel.dots.values(), *(point for line in panel.lines.values() for point in line)]
    xs, ys = [x for x, _ in points] or [0.0], [y for _, y in points] or [0.0]
    if panel.scale == "log":
        ax.set(xscale="log", yscale="log", xlim=_decades(xs), ylim=_decades(ys))
    else:
        if panel.scale == "log y":
            ax.set_yscale("symlog", linthresh=1)
        if panel.x_from_zero and min(xs) >= 0:
            ax.set_xlim(left=0)
        if panel.y_from_zero and min(ys) >= 0:
            ax.set_ylim(bottom=0)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:,.6g}")
        axis.set_minor_formatter(NullFormatter())


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """Powers of ten around the values, at least one apart."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return 10.0**low, 10.0 ** max(high, low + 1)
