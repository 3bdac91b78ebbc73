"""docs/experiments.md: made of raw results, and as it stands made by the present command."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.__main__ import bench_group
from bench.claims import CLAIMS
from bench.commands.reproduction import GRIDS, LATE, LATE_NAMES, OTHERS, UNIFORM
from bench.published import NAMES
from kgs_core.experiments.grid import ExperimentRun, Grid, run_here
from kgs_core.experiments.results import save_results
from kgs_core.simulation.comparison import PUBLISHED
from kgs_core.simulation.replay import Conditions
from kgs_core.simulation.workload import DELTAS, STARTS, StreamSpec

ROOT = Path(__file__).parents[3]
IMAGE = re.compile(r"!\[[^]]*\]\(([^)]+)\)")


def prose(text):
    """What no result changes."""
    return [line for line in text.splitlines() if not line.startswith(("|", "![")) and "seeds" not in line]


@pytest.fixture
def small_results(tmp_path):
    """Every kind of experiment run that the page is made of, small ones."""
    uniform = [StreamSpec(delta, "uniform", 1, 3, 12) for delta in DELTAS]
    others = [StreamSpec(delta, start, 1, 3, 12) for start in STARTS[1:] for delta in (5, 25)]
    main = [
        Grid(tuple(ExperimentRun(name, load) for load in loads for name in PUBLISHED), Conditions())
        for loads in (uniform, others)
    ]
    late_load = StreamSpec(10, "uniform", 1, 3, 12)
    runs = [ExperimentRun(name, late_load) for name in LATE_NAMES] + [ExperimentRun("kafka:15", late_load, 1)]
    late = Grid(tuple(runs), Conditions(record_latency=True))
    for name, grid in ((UNIFORM, main[0]), (OTHERS, main[1]), (LATE, late)):
        save_results(tmp_path / name, run_here(grid, lambda _done, _total: None), grid.conditions)
    return tmp_path


def test_the_page_is_made_of_the_raw_results(small_results, tmp_path):
    page, images = tmp_path / "page.md", tmp_path / "pictures"
    arguments = ["reproduction", "--results", small_results, "--page", page, "--images", images]
    result = CliRunner().invoke(bench_group, [str(argument) for argument in arguments])
    assert (result.exit_code, result.stderr) == (0, "")
    text = page.read_text()
    for delta in DELTAS:
        assert f"### Delta {delta}\n" in text
    assert text.count("| mwf |") == len(DELTAS) + 1
    assert sum(f"| {claim.text} |" in text for claim in CLAIMS) == len(CLAIMS)
    assert "| kafka:15, shuffled orders |" in text
    assert prose(text) == prose((ROOT / "docs/experiments.md").read_text())
    shown = IMAGE.findall(text)
    assert len(shown) == 5
    for name in shown:
        assert name.startswith("pictures/")
        ET.fromstring((tmp_path / name).read_text())


def test_the_grids_are_the_published_one_and_a_smaller_one():
    uniform, others, late = (make(5) for make in GRIDS.values())
    assert len(uniform.runs) == len(set(uniform.runs)) == 12 * 6 * 5
    assert len(others.runs) == len(set(others.runs)) == 12 * 3 * 2 * 5
    assert {(c.load.steps, c.load.partitions, c.load.topics) for c in uniform.runs} == {(500, 200, 2)}
    assert {run.name for run in late.runs} == {*PUBLISHED, "kafka:15", "kafka:20", "kafka:24", "keda"}


def test_the_page_in_the_docs_has_every_figure_and_picture():
    text = (ROOT / "docs/experiments.md").read_text()
    assert text.startswith("# Experiments\n\n`make experiments`")
    assert "5 seeds" in text
    assert (text.count("| holds |"), text.count("| refuted |")) == (9, 2)
    for name in NAMES:
        rows = re.findall(
            rf"^\| {name} \| \d\.\d{{4}} \| \d\.\d{{4}}.* \| \d+\.\d\d \| \d+\.\d\d.* \|$", text, re.MULTILINE
        )
        assert len(rows) == len(DELTAS), name
    for name in IMAGE.findall(text):
        path = ROOT / "docs" / name
        ET.fromstring(path.read_text())
        assert path.stat().st_size <= 60_000
