"""Pictures hold the data, and can be read."""

import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
import pytest
from matplotlib.colors import to_hex

from kgs_core.simulation.charts import Chart, figure, picture, svg

FRONT = Chart(
    "load <1>",
    "CBS",
    "E[R]",
    dots={"mwf": (0.1, 9.0), "search@0.123456": (0.02, 3.0), "bfd": (0.0, 25.0)},
    path=["bfd", "mwf", "search@0.123456"],
    mark=(0.05, "least"),
)
OVER_TIME = Chart("time", "measurement", "consumers", lines={"mwf": [(0, 4), (1, 6)], "keep": [(0, 5), (1, 5)]})


def look_of(ax, name):
    line = next(line for line in ax.get_lines() if line.get_label() == name)
    return to_hex(line.get_color()), line.get_marker(), line.get_linestyle()


def test_a_front_holds_its_dots_its_line_and_its_bound():
    drawn = figure([FRONT])
    (ax,) = drawn.axes
    assert (ax.get_title(loc="left"), ax.get_xlabel(), ax.get_ylabel()) == ("load <1>", "CBS", "E[R]")
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.get_lines()}
    assert {name: lines[name] for name in FRONT.dots} == {name: [list(dot)] for name, dot in FRONT.dots.items()}
    assert [[0.0, 25.0], [0.02, 3.0], [0.1, 9.0]] in lines.values()
    assert [text.get_text() for text in ax.texts] == ["least"]
    assert [[0.05, 0.0], [0.05, 1.0]] in lines.values()
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == list(FRONT.dots)


def test_lines_hold_their_points_and_what_panels_share_is_in_the_legend_once():
    drawn = figure([OVER_TIME, OVER_TIME])
    for ax in drawn.axes:
        assert {line.get_label(): list(map(tuple, line.get_xydata())) for line in ax.get_lines()} == OVER_TIME.lines
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["mwf", "keep"]


def test_a_name_looks_the_same_in_all_panels_and_unlike_every_other():
    """Whatever place it has in each: a reader goes by colour and mark."""
    first = Chart("t", "x", "y", dots={"search": (1, 1), "keep": (2, 2), "kafka:24": (3, 9)})
    second = Chart("u", "x", "y", dots={"keep": (1, 1), **{f"name-{n}": (n, n) for n in range(30)}, "search": (3, 3)})
    axes = figure([first, second]).axes
    for name in ("search", "keep"):
        assert look_of(axes[0], name) == look_of(axes[1], name)
    assert len({look_of(axes[1], name) for name in second.dots}) == len(second.dots)
    lines = {f"line-{n}": [(0, n), (1, n)] for n in range(30)}
    (ax,) = figure([Chart("v", "x", "y", lines=lines)]).axes
    assert len({look_of(ax, name) for name in lines}) == len(lines)


def test_scales():
    below = Chart("t", "x", "y", dots={"a": (-0.02, 3.0), "b": (0.1, 9.0)})
    late = Chart("t", "x", "y", dots={"a": (70.0, 0.0), "b": (80.0, 4000.0)}, x_from_zero=False, scale="log y")
    times = Chart("t", "x", "y", lines={"a": [(200, 0.25)]}, scale="log")
    axes = figure([FRONT, below, late, times]).axes
    assert (axes[0].get_xlim()[0], axes[0].get_ylim()[0]) == (0, 0)
    assert axes[1].get_xlim()[0] < -0.02, "nothing is left out"
    assert axes[2].get_xlim()[0] > 60
    low, one, ten = (axes[2].transData.transform((70, y))[1] for y in (0, 100, 1000))
    assert 0 < low < one < ten < axes[2].get_window_extent().y1
    assert (axes[3].get_xlim(), axes[3].get_ylim()) == ((100, 1000), (0.1, 1))


@pytest.mark.parametrize("dots", [{}, {"a": (0.0, 0.0)}])
def test_a_chart_of_one_dot_and_of_nothing(dots):
    ET.fromstring(svg([Chart("t", "x", "y", dots=dots), Chart("u", "x", "y", dots=dots, scale="log y")]))
    ET.fromstring(svg([Chart("t", "x", "y", lines={"a": []})]))


def test_svg_has_its_words_as_text_whatever_numbers_they_have():
    drawn = svg([FRONT])
    assert drawn.startswith("<svg")
    root = ET.fromstring(drawn)
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {*FRONT.dots, "least", "load <1>", "CBS", "E[R]"} <= texts
    assert root.find("{http://www.w3.org/2000/svg}title").text == "load <1>"
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', drawn))
    assert used <= set(re.findall(r'id="([^"]+)"', drawn)), "nothing that is referred to is missing"


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_same_picture_is_the_same_file_and_changes_nothing_of_the_reader_s_own(kind):
    first = picture([FRONT, OVER_TIME], kind)
    with mpl.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.grid": False}):
        assert picture([FRONT, OVER_TIME], kind) == first
        assert mpl.rcParams["font.size"] == 30
    assert first.startswith({"svg": b"<svg", "png": b"\x89PNG\r\n\x1a\n"}[kind])
    assert mpl.__version__.encode() not in first
