"""docs/experiments.md: made of raw results, and as it stands made by the present command."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from kgs_core.adapters.experiments.grid import Cell, Grid, run_here
from kgs_core.adapters.experiments.results import save_results
from kgs_core.cli.main import cli
from kgs_core.cli.simulate.reproduction import GRIDS, LATE, LATE_NAMES, OTHERS, UNIFORM
from kgs_core.simulation.charts import Chart, charts
from kgs_core.simulation.comparison import PUBLISHED
from kgs_core.simulation.figure import Line, Text, svg
from kgs_core.simulation.published import CLAIMS, NAMES
from kgs_core.simulation.replay import Conditions
from kgs_core.simulation.workload import DELTAS, STARTS, StreamSpec

ROOT = Path(__file__).parents[4]
IMAGE = re.compile(r"!\[[^]]*\]\(([^)]+)\)")


@pytest.fixture
def small_results(tmp_path):
    """Every kind of cell that the page is made of, small ones."""
    uniform = [StreamSpec(delta, "uniform", 1, 3, 12) for delta in DELTAS]
    others = [StreamSpec(delta, start, 1, 3, 12) for start in STARTS[1:] for delta in (5, 25)]
    main = [
        Grid(tuple(Cell(name, load) for load in loads for name in PUBLISHED), Conditions())
        for loads in (uniform, others)
    ]
    late_load = StreamSpec(10, "uniform", 1, 3, 12)
    cells = [Cell(name, late_load) for name in LATE_NAMES] + [Cell("kafka:15", late_load, 1)]
    late = Grid(tuple(cells), Conditions(record_latency=True))
    for name, grid in ((UNIFORM, main[0]), (OTHERS, main[1]), (LATE, late)):
        save_results(tmp_path / name, run_here(grid, lambda _done, _total: None), grid.conditions)
    return tmp_path


def test_the_page_is_made_of_the_raw_results(small_results, tmp_path):
    page, images = tmp_path / "page.md", tmp_path / "pictures"
    arguments = ["bench", "reproduction", "--results", small_results, "--page", page, "--images", images]
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert (result.exit_code, result.stderr) == (0, "")
    text = page.read_text()
    for delta in DELTAS:
        assert f"### Delta {delta}\n" in text
    assert text.count("| mwf |") == len(DELTAS) + 1
    assert sum(f"| {claim.text} |" in text for claim in CLAIMS) == 6
    assert "| kafka:15, shuffled orders |" in text
    shown = IMAGE.findall(text)
    assert len(shown) == 3
    for name in shown:
        assert name.startswith("pictures/")
        ET.fromstring((tmp_path / name).read_text())


def test_the_grids_are_the_published_one_and_a_smaller_one():
    uniform, others, late = (make(5) for make in GRIDS.values())
    assert len(uniform.cells) == len(set(uniform.cells)) == 12 * 6 * 5
    assert len(others.cells) == len(set(others.cells)) == 12 * 3 * 2 * 5
    assert {(c.load.steps, c.load.partitions, c.load.topics) for c in uniform.cells} == {(500, 200, 2)}
    assert {cell.name for cell in late.cells} == {*PUBLISHED, "kafka:15", "kafka:20", "kafka:24", "keda"}


def test_the_page_in_the_docs_has_every_figure_and_picture():
    text = (ROOT / "docs/experiments.md").read_text()
    assert text.startswith("# Experiments\n\nWritten by `make experiments`")
    assert "5 seeds" in text
    assert text.count("| holds |") == 6
    for name in NAMES:
        rows = re.findall(
            rf"^\| {name} \| \d\.\d{{4}} \| \d\.\d{{4}}.* \| \d+\.\d\d \| \d+\.\d\d.* \|$", text, re.MULTILINE
        )
        assert len(rows) == len(DELTAS), name
    for name in IMAGE.findall(text):
        path = ROOT / "docs" / name
        ET.fromstring(path.read_text())
        assert path.stat().st_size <= 20_000


def test_labels_of_a_chart_do_not_cover_each_other():
    dots = {f"name-{n}": (1.0 + n / 1000, 5.0) for n in range(8)}
    root = ET.fromstring(svg(charts([Chart("t", "x", "y", dots=dots, path=["name-0", "name-7"])])))
    labels = [e for e in root.iter("{http://www.w3.org/2000/svg}text") if (e.text or "").startswith("name-")]
    heights = sorted(float(label.get("y")) for label in labels)
    assert len(labels) == 8
    assert min(b - a for a, b in pairwise(heights)) >= 11


def test_a_chart_of_one_dot_and_of_nothing():
    for dots in ({}, {"a": (0.0, 0.0)}):
        ET.fromstring(svg(charts([Chart("t", "x", "y", dots=dots), Chart("u", "x", "y", dots=dots, log_y=True)])))


def drawn(picture, kind):
    return [shape for shape in picture.shapes if isinstance(shape, kind)]


def test_a_name_has_one_colour_in_all_panels():
    """Whatever place it has in each: a reader goes by the colour."""
    first = Chart("t", "x", "y", dots={"search": (1, 1), "keep": (2, 2), "kafka:24": (3, 9)})
    second = Chart("u", "x", "y", dots={"keep": (1, 1), "kafka:24": (2, 2), "search": (3, 3)})
    third = Chart("v", "x", "", lines={"least": [(0, 0), (1, 1)], "kafka:24": [(0, 1), (1, 2)]})
    colors = {}
    for text in drawn(charts([first, second, third]), Text):
        if text.text in ("search", "keep", "kafka:24", "least"):
            colors.setdefault(text.text, set()).add(text.color)
    assert {len(found) for found in colors.values()} == {1}
    assert len(set().union(*colors.values())) == 4


def test_labels_stay_within_the_axes_and_leaders_under_them():
    dots = {f"kafka:{n}": (float(n), 5.0) for n in range(15, 25)}
    picture = charts([Chart("t", "x", "y", dots=dots)])
    axes = drawn(picture, Line)[0].points
    labels = [text for text in drawn(picture, Text) if text.text in dots]
    assert len(labels) == len(dots)
    assert all(axes[0][0] <= t.at[0] and t.at[0] + 6 * len(t.text) <= axes[2][0] for t in labels)
    order = [type(shape) if not isinstance(shape, Line) else shape.color for shape in picture.shapes]
    last_leader = max(n for n, kind in enumerate(order) if kind == "#bbbbbb")
    assert last_leader < min(n for n, shape in enumerate(picture.shapes) if shape in labels)
