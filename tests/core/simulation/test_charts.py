"""Pictures hold the data, and can be read."""

import re
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise

import matplotlib as mpl
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

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


def boxes(drawn):
    """Where each name is without its leader, in pixels, panel by panel."""
    renderer = drawn.canvas.get_renderer()
    return [
        {text.get_text(): Text.get_window_extent(text, renderer) for text in ax.texts if text.get_text()}
        for ax in drawn.axes
    ]


def color_of(ax, name):
    return next(to_hex(text.get_color()) for text in ax.texts if text.get_text() == name)


def test_a_front_holds_its_dots_its_line_and_its_bound():
    (ax,) = figure([FRONT]).axes
    assert (ax.get_title(loc="left"), ax.get_xlabel(), ax.get_ylabel()) == ("load <1>", "CBS", "E[R]")
    assert ax.collections[0].get_offsets().tolist() == [list(dot) for dot in FRONT.dots.values()]
    colors = [to_hex(color) for color in ax.collections[0].get_facecolors()]
    assert colors == [color_of(ax, name) for name in FRONT.dots]
    named = {text.get_text(): text.xy for text in ax.texts if text.get_text()}
    assert named == {**FRONT.dots, "least": (0.05, 1)}
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.get_lines()}
    assert lines["front"] == [[0.0, 25.0], [0.02, 3.0], [0.1, 9.0]]
    assert [x for x, _ in lines["least"]] == [0.05, 0.05]


def test_lines_hold_their_points_and_have_names_at_their_ends():
    (ax,) = figure([OVER_TIME]).axes
    assert {line.get_label(): list(map(tuple, line.get_xydata())) for line in ax.get_lines()} == OVER_TIME.lines
    assert {text.get_text(): text.xy for text in ax.texts} == {"mwf": (1, 6), "keep": (1, 5)}


def test_lines_that_panels_share_are_in_the_legend_once():
    drawn = figure([OVER_TIME, OVER_TIME])
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["mwf", "keep"]
    assert not [text for ax in drawn.axes for text in ax.texts]


def test_a_name_has_one_colour_in_all_panels():
    """Whatever place it has in each: a reader goes by the colour."""
    first = Chart("t", "x", "y", dots={"search": (1, 1), "keep": (2, 2), "kafka:24": (3, 9)})
    second = Chart("u", "x", "y", dots={"keep": (1, 1), "kafka:24": (2, 2), "search": (3, 3)})
    third = Chart("v", "x", "", lines={"least": [(0, 0), (1, 1)], "kafka:24": [(0, 1), (1, 2)]})
    axes = figure([first, second, third]).axes
    for name in ("search", "keep"):
        assert color_of(axes[0], name) == color_of(axes[1], name)
    assert color_of(axes[0], "kafka:24") == color_of(axes[2], "kafka:24") != color_of(axes[2], "least")


@pytest.mark.parametrize(
    "dots",
    [
        {f"name-{n}": (1.0 + n / 1000, 5.0) for n in range(8)},
        {f"kafka:{n}": (float(n), 5.0) for n in range(15, 25)},
        {f"search@{n}": (n / 100, 30 / (n + 1)) for n in range(20)},
    ],
    ids=["one above the other", "a row", "a front"],
)
def test_names_cover_no_name_and_no_dot_and_stay_within_the_axes(dots):
    for others in ([], [FRONT]):
        drawn = figure([Chart("t", "x", "y", dots=dots, path=list(dots)), *others])
        ax, found = drawn.axes[0], boxes(drawn)[0]
        assert set(found) == set(dots)
        frame = ax.get_window_extent()
        assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in found.values())
        assert all(frame.y0 <= box.y0 and box.y1 <= frame.y1 for box in found.values())
        assert not [pair for pair in combinations(found, 2) if found[pair[0]].overlaps(found[pair[1]])]
        places = [ax.transData.transform(dot) for dot in dots.values()]
        assert not [name for name, box in found.items() if any(box.contains(*place) for place in places)]


def test_names_of_lines_that_end_together_do_not_meet():
    lines = {f"line {n}": [(100, 0.001), (1000, 0.01)] for n in range(14)}
    drawn = figure([Chart("t", "partitions", "s", lines=lines, scale="log")])
    found = boxes(drawn)[0]
    assert len(found) == 14
    heights = sorted((box.y0 + box.y1) / 2 for box in found.values())
    height = min(box.height for box in found.values())
    assert min(b - a for a, b in pairwise(heights)) >= 0.9 * height
    assert all(box.y0 >= 0 and box.y1 <= drawn.bbox.y1 and box.x1 <= drawn.bbox.x1 for box in found.values())


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
