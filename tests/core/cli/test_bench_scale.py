"""`kgs bench packing-scale` on small loads."""

import json
import math
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from click.testing import CliRunner

from kgs_core.cli.bench_scale import parse_names, parse_partitions
from kgs_core.cli.bench_scale_plot import scale_picture
from kgs_core.cli.bench_scale_run import ScaleResult, growth, measure, scale_load
from kgs_core.cli.main import cli
from kgs_core.errors import ConfigError
from kgs_core.experiments.figure import Text
from kgs_core.packing import ALGORITHMS
from kgs_core.packing.problem import DEFAULT_WORTH


def run(*arguments):
    return CliRunner().invoke(cli, ["bench", "packing-scale", *map(str, arguments)])


def timed(partitions, seconds):
    return ScaleResult("mwf", partitions, 1, 1, 0.0, [seconds], 0.0, 0.0)


def test_a_row_for_each_algorithm_and_size(tmp_path):
    json_file, plot_file = tmp_path / "scale.json", tmp_path / "scale.svg"
    options = ["--sizes", "40,8", "--algorithm", "mwf,bfd", "--steps", 2]
    result = run(*options, "--json", json_file, "--plot", plot_file)
    assert (result.exit_code, result.stderr) == (0, "")
    rows = [line.split()[:2] for line in result.stdout.splitlines()[1:]]
    assert rows == [["8", "mwf"], ["8", "bfd"], ["40", "mwf"], ["40", "bfd"]]
    tree = json.loads(json_file.read_text())
    assert [(one["partitions"], one["algorithm"]) for one in tree["results"]] == [
        (8, "mwf"), (8, "bfd"), (40, "mwf"), (40, "bfd")
    ]  # fmt: skip
    assert all(len(one["times_s"]) == 2 and 0 < one["min_s"] <= one["median_s"] for one in tree["results"])
    assert all(one["consumers"] >= one["least_consumers"] > 0 for one in tree["results"])
    assert set(tree["growth"]) == {"mwf", "bfd"}
    drawn = {text.text for text in ET.fromstring(plot_file.read_text()).iter("{http://www.w3.org/2000/svg}text")}
    assert {"mwf", "bfd"} <= drawn


def test_a_picture_of_pixels(tmp_path):
    file = tmp_path / "scale.png"
    assert run("--sizes", 8, "--algorithm", "wfd", "--steps", 1, "--plot", file).exit_code == 0
    assert file.read_bytes().startswith(b"\x89PNG")


def test_all_but_the_times_repeats():
    load = scale_load(30, delta=10, steps=3, seed=5)
    first, second = (measure("mwf", ALGORITHMS["mwf"], DEFAULT_WORTH, load) for _ in range(2))
    assert (first.consumers, first.least, first.rscore) == (second.consumers, second.least, second.rscore)
    assert first.rscore > 0
    assert first.memory_bytes > 0


def test_growth_is_the_exponent():
    results = [timed(n, 3e-6 * n**1.5) for n in (100, 1000, 10_000)]
    assert growth(results) == pytest.approx(1.5)
    assert growth(results[:1]) is None


def test_every_algorithm_takes_part_unless_some_are_named():
    assert parse_names(()) == tuple(ALGORITHMS)
    assert parse_names(("mwf, bfd", "mwf")) == ("mwf", "bfd")
    assert parse_partitions("1000, 200,200") == (200, 1000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sizes", "10,many,0"], "error: --sizes: 'many': write partitions"),
        (["--algorithm", "magic"], "error: --algorithm: 'magic': write nf, "),
        (["--plot", "scale.gif"], "error: --plot: scale.gif: name a file that ends in .svg or .png"),
        (["--json", "no-such-folder/x.json"], "error: --json: no-such-folder/x.json: its folder does not exist"),
    ],
)
def test_what_cannot_be_is_refused(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(message)


def test_wrong_sizes_are_all_named():
    with pytest.raises(ConfigError) as refused:
        parse_partitions("10,many,0")
    assert [problem.split("'")[1] for problem in refused.value.problems] == ["many", "0"]


def test_names_at_the_same_height_do_not_meet():
    picture = scale_picture({f"line {n}": [(100, 0.001), (1000, 0.01)] for n in range(14)})
    heights = sorted(shape.at[1] for shape in picture.shapes if isinstance(shape, Text) and "line" in shape.text)
    assert min(b - a for a, b in pairwise(heights)) >= 11
    assert all(math.isfinite(height) and 0 < height < picture.height for height in heights)
